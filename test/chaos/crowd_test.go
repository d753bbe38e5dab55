//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
	"felix.dev/felix/test/chaos/history"
)

// crowd is publishers and readers of a cluster that go on whatever becomes of its brokers, and a history of it.
type crowd struct {
	t   *testing.T
	c   *cluster
	rec *history.Recorder

	ctx        context.Context // ends when something is wrong, or with the test
	fail       context.CancelCauseFunc
	quit       chan struct{} // closed when publishers are to stop
	publishing sync.WaitGroup
	reading    sync.WaitGroup

	mu sync.Mutex
	// All guarded by mu.
	shards  map[history.Shard]bool
	acks    []*count
	readers []*history.Reading
	trims   map[string]bool // streams with a retention that takes what readers may not have read
	// gaveUp counts publishes of idempotent publishers that failed.
	gaveUp int
}

// count is one publisher's acknowledgements.
type count struct {
	over sync.WaitGroup // its publisher
	mu   sync.Mutex
	n    int
}

func (c *count) add() { c.mu.Lock(); c.n++; c.mu.Unlock() }

func (c *count) get() int { c.mu.Lock(); defer c.mu.Unlock(); return c.n }

func newCrowd(c *cluster) *crowd {
	w := &crowd{t: c.t, c: c, rec: history.NewRecorder(), quit: make(chan struct{}), shards: map[history.Shard]bool{}, trims: map[string]bool{}}
	w.ctx, w.fail = context.WithCancelCause(c.t.Context())
	return w
}

// flow is one publisher.
type flow struct {
	stream string
	shards uint32 // 0: 1
	via    member
	how    client.PublisherConfig
	burst  int           // records at once; they are answered before the next burst
	pause  time.Duration // between bursts
	size   int           // of a record at most; 0: 600
	until  chan struct{} // closed when it is to end before the others; nil: it ends with them
}

// publish runs a publisher.
func (w *crowd) publish(f flow, rng *rand.Rand) {
	w.t.Helper()
	shards := max(f.shards, 1)
	pub, err := w.c.dial(f.via).NewPublisher(streamOf(f.stream), f.how)
	if err != nil {
		w.t.Fatal(err)
	}
	sources := make([]uint32, shards)
	for i := range sources {
		at := history.Shard{Stream: f.stream, Number: uint32(i)}
		// Without a number a publish that was given up may still arrive, behind those that came after it.
		sources[i] = w.rec.Source(history.Source{Shard: at, Repeats: f.how.AtLeastOnce, Unordered: !f.how.Idempotent})
		w.mu.Lock()
		w.shards[at] = true
		w.mu.Unlock()
	}
	acks := &count{}
	w.mu.Lock()
	w.acks = append(w.acks, acks)
	w.mu.Unlock()
	acks.over.Add(1)
	w.publishing.Go(func() {
		defer acks.over.Done()
		numbers := make([]uint64, shards)
		pace := time.NewTicker(max(f.pause, time.Millisecond))
		defer pace.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-f.until:
				return
			case <-w.ctx.Done():
				return
			case <-pace.C:
			}
			var under []underWay
			for range f.burst {
				m := client.Message{}
				shard := uint32(0)
				if shards > 1 {
					m.Keyed, m.Key = true, fmt.Append(nil, rng.IntN(1000))
					shard = wire.ShardOf(m.Key, true, shards, wire.RoutingModulo)
				}
				numbers[shard]++
				id := history.ID{Source: sources[shard], Number: numbers[shard]}
				m.Payload = id.Payload(history.Head + rng.IntN(max(f.size, 600)))
				u := underWay{note: w.rec.Publish(id)}
				if u.pending, err = pub.Publish(w.ctx, m); err != nil {
					w.told(u, client.Receipt{}, err, &f, acks)
					continue
				}
				under = append(under, u)
			}
			for _, u := range under {
				r, err := u.pending.Wait(w.ctx)
				w.told(u, r, err, &f, acks)
			}
		}
	})
}

// told enters what a publisher was told.
func (w *crowd) told(u underWay, r client.Receipt, err error, f *flow, acks *count) {
	switch {
	case w.ctx.Err() != nil:
	case err == nil:
		u.note.Acked(r.Offset)
		acks.add()
	case errors.Is(err, client.ErrOutcomeUnknown):
		u.note.Unknown()
	case errors.Is(err, client.ErrRetryable):
		u.note.Refused()
	default:
		w.fail(fmt.Errorf("%s: a publish failed for good: %w", f.stream, err))
	}
	if err != nil && w.ctx.Err() == nil && f.how.Idempotent {
		w.mu.Lock()
		w.gaveUp++
		w.mu.Unlock()
		w.t.Logf("%s: an idempotent publisher has given up: %v", f.stream, err)
	}
}

// follow reads a shard from its beginning, as long as the test lasts.
func (w *crowd) follow(stream string, shard uint32, via member) *history.Reading {
	w.t.Helper()
	return w.read(w.ctx, history.Reader{Name: fmt.Sprintf("through %s", via.node()), Shard: history.Shard{Stream: stream, Number: shard}, Via: via.node()},
		w.c.dial(via), client.Earliest())
}

// latest begins to read at the end, and reads until stop is called.
func (w *crowd) latest(stream string, shard uint32, via member) (reading *history.Reading, stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	reading = w.read(ctx, history.Reader{Name: fmt.Sprintf("latest through %s", via.node()), Shard: history.Shard{Stream: stream, Number: shard}, Via: via.node(), Latest: true},
		w.c.dial(via), client.Latest())
	return reading, cancel
}

// read subscribes and takes down what comes until ctx ends.
func (w *crowd) read(ctx context.Context, r history.Reader, cl *client.Client, from client.Start) *history.Reading {
	w.t.Helper()
	w.mu.Lock()
	r.Lossy = w.trims[r.Shard.Stream]
	w.shards[r.Shard] = true
	w.mu.Unlock()
	r.Call = w.rec.Now()
	sub, err := cl.Subscribe(ctx, streamOf(r.Shard.Stream), client.SubscribeConfig{
		Start: from, Shard: r.Shard.Number, ResumeTimeout: patience, SkipLost: r.Lossy,
	})
	if err != nil {
		w.t.Fatalf("subscribe to %s through %s: %v", r.Shard, r.Via, err)
	}
	r.Return, r.Start = w.rec.Now(), sub.StartOffset()
	reading := w.rec.Reader(r)
	w.mu.Lock()
	w.readers = append(w.readers, reading)
	w.mu.Unlock()
	w.reading.Go(func() {
		defer func() { _ = sub.Close() }()
		defer reading.Stop()
		for {
			events, err := sub.NextBatch(ctx)
			if err != nil {
				if ctx.Err() == nil {
					w.fail(fmt.Errorf("%s, reader %s at %d: %w", r.Shard, r.Name, reading.Next(), err))
				}
				return
			}
			for i := range events {
				if err := deliver(reading, &events[i]); err != nil {
					w.fail(fmt.Errorf("%s, reader %s: %w", r.Shard, r.Name, err))
					return
				}
			}
		}
	})
	return reading
}

func deliver(reading *history.Reading, e *client.Event) error {
	id, err := history.Parse(e.Payload)
	if err != nil {
		return fmt.Errorf("offset %d: %w", e.Offset, err)
	}
	reading.Deliver(e.Offset, id, e.Skipped, e.Gap)
	return nil
}

// check fails the test if something is wrong already.
func (w *crowd) check() {
	w.t.Helper()
	if w.ctx.Err() != nil {
		w.t.Fatal(context.Cause(w.ctx))
	}
}
