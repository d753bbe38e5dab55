package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"felix.dev/felix/client"
)

// minSize is the smallest record that holds its number.
const minSize = 8

// publisher publishes numbered records in batches, one at a time, and each again that was refused for now.
type publisher struct {
	records, size int
	say           func(format string, args ...any)

	took    time.Duration
	longest time.Duration     // wait for an answer
	refused map[string]uint64 // batches, by reason
}

func (p *publisher) run(ctx context.Context, c *client.Client, stream client.Stream) error {
	p.refused = map[string]uint64{}
	batch := batchRecords(p.size)
	pub, err := c.NewPublisher(stream, client.PublisherConfig{
		// A batch goes out when it is full, so that each is one publish; only the last one lingers.
		MaxBatchRecords: batch, MaxBatchBytes: 2*batchBytes + 16*batch, Linger: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close(context.WithoutCancel(ctx)) }() // each record has had its own answer
	begin := time.Now()
	for first := 0; first < p.records; first += batch {
		numbers := make([]int, 0, batch)
		for n := first; n < min(first+batch, p.records); n++ {
			numbers = append(numbers, n)
		}
		for len(numbers) > 0 {
			if numbers, err = p.batch(ctx, pub, numbers); err != nil {
				return err
			}
		}
	}
	p.took = time.Since(begin)
	return nil
}

// batch publishes records and returns those that are to be published again, after the pause that the broker asked
// for.
func (p *publisher) batch(ctx context.Context, pub *client.Publisher, numbers []int) (again []int, err error) {
	begin := time.Now()
	payload := make([]byte, p.size)
	pending := make([]*client.Pending, len(numbers))
	for i, n := range numbers {
		binary.BigEndian.PutUint64(payload, uint64(n))
		if pending[i], err = pub.Publish(ctx, client.Message{Payload: payload}); err != nil {
			return nil, err
		}
	}
	var pause time.Duration
	for i, one := range pending {
		_, err := one.Wait(ctx)
		var refused *client.Error
		switch {
		case err == nil:
		case errors.As(err, &refused) && errors.Is(err, client.ErrRetryable):
			if len(again) == 0 {
				p.refused[refused.Reason]++
				p.say("the publisher is told to wait: %s", refused.Reason)
			}
			again = append(again, numbers[i])
			pause = max(pause, refused.RetryAfter)
		default:
			return nil, err
		}
	}
	p.longest = max(p.longest, time.Since(begin))
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return again, nil
}

func (p *publisher) result() PublisherResult {
	r := PublisherResult{Records: uint64(p.records), Bytes: uint64(p.records) * uint64(p.size), Took: Millis(p.took), LongestWait: Millis(p.longest)}
	for reason, n := range p.refused {
		r.Refused += n
		r.Reasons = append(r.Reasons, reason)
	}
	return r
}
