//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"felix.dev/felix/client"
)

// follower is a subscription that lives as long as the test.
type follower struct {
	at     place
	skips  bool // some of what it follows may be taken from under it
	slow   bool
	next   atomic.Uint64 // offset of the next event
	target atomic.Uint64 // where the test wants it to come, once it knows

	lagged, lost, gaps atomic.Int64
}

func streamOf(name string) client.Stream { return client.Stream{Namespace: namespace, Name: name} }

// follow starts the readers that resume across everything.
func (l *load) follow(rng *rand.Rand) {
	l.t.Helper()
	for _, f := range []*follower{
		{at: place{streamLog, 0}},
		{at: place{streamLog, 0}, slow: true},
		{at: place{streamKept, 0}, skips: true},
		{at: place{streamKept, 0}, skips: true, slow: true},
		{at: place{streamSoon, 0}},
		{at: place{streamKeyed, 0}},
		{at: place{streamKeyed, 1}},
		{at: place{streamMem, 0}, skips: true},
	} {
		c := l.p.dial(func(c *client.Config) {
			if f.slow {
				c.StreamWindow = 16 << 10
			}
		})
		sub, err := c.Subscribe(l.ctx, streamOf(f.at.stream), client.SubscribeConfig{
			Start: client.Earliest(), Shard: f.at.shard, SkipLost: f.skips,
			OnLagged: func(uint64, uint64) { f.lagged.Add(1) },
			OnLost:   func(error) { f.lost.Add(1) },
		})
		if err != nil {
			l.t.Fatal(err)
		}
		f.next.Store(sub.StartOffset())
		l.followers = append(l.followers, f)
		pauses := rand.New(rand.NewPCG(rng.Uint64(), 0))
		l.reading.Go(func() {
			if err := f.run(l.ctx, sub, l.ledgers[f.at], pauses); err != nil && l.ctx.Err() == nil {
				l.fail(fmt.Errorf("%s, a reader at offset %d: %w", f.at, f.next.Load(), err))
			}
		})
	}
}

func (f *follower) run(ctx context.Context, sub *client.Subscription, l *ledger, pauses *rand.Rand) error {
	pace := time.NewTimer(0)
	defer pace.Stop()
	for {
		// A slow one stops now and then for long enough to be cut off, until it has to
		// come to the end.
		if f.slow && f.target.Load() == 0 && pauses.IntN(50) == 0 {
			pace.Reset(time.Duration(pauses.IntN(400)) * time.Millisecond)
			select {
			case <-pace.C:
			case <-ctx.Done():
				return nil
			}
		}
		events, err := sub.NextBatch(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			next, err := take(l, &events[i], f.next.Load(), f.skips)
			if err != nil {
				return err
			}
			if events[i].Gap > 0 {
				f.gaps.Add(1)
			}
			f.next.Store(next)
		}
	}
}

// take checks one event against its reader's position and the ledger.
func take(l *ledger, e *client.Event, next uint64, skips bool) (after uint64, err error) {
	switch {
	case !e.HasOffset:
		return next, fmt.Errorf("an event without an offset")
	case e.Skipped > 0:
		return next, fmt.Errorf("offset %d: %d hidden records, there should be none", e.Offset, e.Skipped)
	case e.Gap > 0 && !skips, e.Offset != next+e.Gap:
		return next, fmt.Errorf("got offset %d with a gap of %d", e.Offset, e.Gap)
	}
	i, err := parse(e.Payload)
	if err != nil {
		return next, fmt.Errorf("offset %d: %w", e.Offset, err)
	}
	return e.Offset + 1, l.saw(i, e.Offset)
}

// readBack reads [from, to) of a shard with a reader of its own and holds it against
// the ledger.
func (l *load) readBack(at place, from, to uint64) {
	l.t.Helper()
	if from >= to {
		return
	}
	ctx, cancel := context.WithTimeoutCause(l.ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	// What retention may take meanwhile is skipped, and only that.
	skips := at.stream == streamKept || at.stream == streamMem
	c := l.p.dial()
	defer c.Close()
	sub, err := c.Subscribe(ctx, streamOf(at.stream), client.SubscribeConfig{Start: client.Earliest(), Shard: at.shard, SkipLost: skips})
	if skips && err == nil {
		from = sub.StartOffset()
	} else if err == nil {
		_ = sub.Close()
		sub, err = c.Subscribe(ctx, streamOf(at.stream), client.SubscribeConfig{Start: client.At(from), Shard: at.shard})
	}
	if err != nil {
		l.t.Fatalf("%s: read back from %d: %v", at, from, err)
	}
	for next := from; next < to; {
		events, err := sub.NextBatch(ctx)
		for i := 0; i < len(events) && err == nil; i++ {
			next, err = take(l.ledgers[at], &events[i], next, skips)
		}
		if err != nil {
			l.t.Fatalf("%s: read back [%d,%d) at %d: %v (%v)", at, from, to, next, err, context.Cause(ctx))
		}
	}
}
