package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/client"
)

// sink is what a publisher publishes to: a *client.Publisher.
type sink interface {
	Publish(ctx context.Context, m client.Message) (*client.Pending, error)
	Flush(ctx context.Context) error
}

// publisher makes the records of one sequence. It belongs to one goroutine at a
// time.
type publisher struct {
	id      uint16
	pub     sink
	window  *window
	pattern *pattern
	clock   *recorder
	every   uint64 // stamp one of so many records; 0: none
	buf     []byte
	// perStream is how many publishers share the stream.
	perStream int
	// seq is the next record's place: how many there are.
	seq uint64
}

// limit says when a phase is over: not before the time, not before the volume.
type limit struct {
	until   time.Time // zero: only the records count
	records uint64    // of this publisher, in this phase
}

// lookEvery is how many bytes a publisher may hand over between two looks at the
// clock.
const lookEvery = 64 << 10

// saturate publishes as fast as the window allows.
func (p *publisher) saturate(ctx context.Context, l limit) error {
	first := p.seq
	stride := uint64(max(1, lookEvery/len(p.buf)))
	for {
		n := p.seq - first
		if n >= l.records && (l.until.IsZero() || n%stride == 0 && !time.Now().Before(l.until)) {
			break
		}
		if err := p.window.acquire(ctx); err != nil {
			return err
		}
		r := record{seq: p.seq, publisher: p.id}
		if p.every != 0 && p.seq%p.every == 0 {
			r.stamp.due = p.clock.now()
		}
		if err := p.send(ctx, r); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// pace publishes one record each period, from start on, and never waits for a
// reader. A record that is late says so: its latency counts from when it was due.
func (p *publisher) pace(ctx context.Context, start time.Duration, period time.Duration, until time.Duration) error {
	pacer, err := newPacer()
	if err != nil {
		return err
	}
	defer pacer.close()
	for due := start; due < until; due += period {
		if err := pacer.wait(ctx, due-p.clock.now()); err != nil {
			return err
		}
		p.window.sent.Add(1)
		st := stamp{due: due, late: max(0, p.clock.now()-due)}
		if err := p.send(ctx, record{seq: p.seq, publisher: p.id, stamp: st}); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// send hands a record to the client library.
func (p *publisher) send(ctx context.Context, r record) error {
	p.pattern.write(p.buf, r)
	if _, err := p.pub.Publish(ctx, client.Message{Payload: p.buf}); err != nil {
		return fmt.Errorf("bench: publish: %w", err)
	}
	p.seq++
	return nil
}

func (p *publisher) flush(ctx context.Context) error {
	if err := p.pub.Flush(ctx); err != nil {
		return fmt.Errorf("bench: publish: %w", err)
	}
	return nil
}

// retryAfter is the wait that the broker suggests.
func retryAfter(err error) time.Duration {
	var e *client.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return e.RetryAfter
	}
	return 10 * time.Millisecond
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
