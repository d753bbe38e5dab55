package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/client"
)

// acks is what a publisher that waits for answers has seen.
type acks struct {
	acked   int64
	refused int64 // for now; these records were sent again
}

// flight is a record without an answer.
type flight struct {
	pending *client.Pending
	sent    time.Duration
	seq     uint64
}

// closedLoop publishes with up to inflight records without an answer, and records
// how long each answer took.
func (p *publisher) closedLoop(ctx context.Context, inflight int, l limit) (acks, error) {
	var a acks
	ring := make([]flight, inflight)
	first, landed := p.seq, p.seq // ring holds what lies between landed and seq
	land := func() error {
		err := p.land(ctx, &ring[landed%uint64(inflight)], &a)
		landed++
		return err
	}
	for p.seq-first < l.records || time.Now().Before(l.until) {
		if p.seq-landed == uint64(inflight) {
			if err := land(); err != nil {
				return a, err
			}
		}
		f := flight{seq: p.seq, sent: p.clock.now()}
		var err error
		if f.pending, err = p.launch(ctx, f.seq); err != nil {
			return a, err
		}
		ring[p.seq%uint64(inflight)] = f
		p.seq++
	}
	for landed < p.seq {
		if err := land(); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (p *publisher) launch(ctx context.Context, seq uint64) (*client.Pending, error) {
	p.pattern.write(p.buf, record{seq: seq, publisher: p.id})
	pending, err := p.pub.Publish(ctx, client.Message{Payload: p.buf})
	if err != nil {
		return nil, fmt.Errorf("bench: publish: %w", err)
	}
	return pending, nil
}

// land waits for an answer. A record that the broker had no room for is sent again,
// which may change its place in the stream.
func (p *publisher) land(ctx context.Context, f *flight, a *acks) error {
	for {
		_, err := f.pending.Wait(ctx)
		if err == nil {
			a.acked++
			p.clock.record(int(p.id), stamp{due: f.sent}, p.clock.now())
			return nil
		}
		if !errors.Is(err, client.ErrRetryable) {
			return fmt.Errorf("bench: publish: %w", err)
		}
		a.refused++
		if err := sleep(ctx, retryAfter(err)); err != nil {
			return err
		}
		if f.pending, err = p.launch(ctx, f.seq); err != nil {
			return err
		}
	}
}
