package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"felix.dev/felix/client"
)

// reader takes every record of a stream and keeps accounts. Its fields are its goroutine's own until run has
// returned; only stalled and release are for others.
type reader struct {
	name   string
	client *client.Client
	stream client.Stream
	want   uint64

	// With stallAfter it stops asking for records once it has that many, says so by closing stalled, and goes on
	// when release is closed.
	stallAfter uint64
	stalled    chan struct{}
	release    chan struct{}

	sub      *client.Subscription
	next     uint64 // offset that comes next if nothing is missing
	seen     []bool // by number of the record
	received uint64
	gaps     uint64 // offsets that did not come
	repeats  uint64
	lagged   []Lag
}

func (r *reader) subscribe(ctx context.Context, from client.Start) error {
	// NoReconnect: the demonstration shows what the client otherwise does by itself.
	sub, err := r.client.Subscribe(ctx, r.stream, client.SubscribeConfig{Start: from, NoReconnect: true})
	if err != nil {
		return err
	}
	r.sub = sub
	if len(r.lagged) == 0 {
		r.next = sub.StartOffset()
	}
	return nil
}

func (r *reader) close() { _ = r.sub.Close() } // nothing can be wrong with an end

func (r *reader) run(ctx context.Context) error {
	for r.received < r.want {
		if r.stallAfter > 0 && r.received == r.stallAfter && len(r.lagged) == 0 {
			close(r.stalled)
			select {
			case <-r.release:
			case <-ctx.Done():
				return ctx.Err()
			}
			r.stallAfter = 0
		}
		event, err := r.sub.Next(ctx)
		var lag *client.LaggedError
		switch {
		case errors.As(err, &lag):
			r.lagged = append(r.lagged, Lag{ResumeFrom: lag.ResumeFrom, FirstMissing: r.next, ReadBefore: r.received})
			r.close()
			if err := r.subscribe(ctx, client.At(lag.ResumeFrom)); err != nil {
				return fmt.Errorf("resume at offset %d: %w", lag.ResumeFrom, err)
			}
		case err != nil:
			return fmt.Errorf("after %d of %d records: %w", r.received, r.want, err)
		default:
			if err := r.count(event); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) count(e client.Event) error {
	switch {
	case !e.HasOffset:
		return errors.New("a record came without an offset")
	case e.Offset > r.next:
		r.gaps += e.Offset - r.next
	case e.Offset < r.next:
		r.repeats++
	}
	r.next = max(r.next, e.Offset+1)
	number := binary.BigEndian.Uint64(e.Payload)
	if number >= uint64(len(r.seen)) {
		return fmt.Errorf("offset %d holds record %d, which nobody published", e.Offset, number)
	}
	if r.seen[number] {
		r.repeats++
		return nil
	}
	r.seen[number] = true
	r.received++
	return nil
}

func (r *reader) result() ReaderResult {
	return ReaderResult{Name: r.name, Received: r.received, Expected: r.want, Gaps: r.gaps, Repeats: r.repeats, Lagged: r.lagged}
}
