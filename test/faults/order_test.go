package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/client"
)

// seeded gives the randomness of a test; FELIX_FAULTS_SEED repeats a run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("FELIX_FAULTS_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("FELIX_FAULTS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// witness holds what any reader or publisher has seen at an offset: nobody else may
// see something different there.
type witness struct {
	mu sync.Mutex
	at map[uint64]string
}

func newWitness() *witness { return &witness{at: map[uint64]string{}} }

func (w *witness) saw(offset uint64, source uint32, number uint64) error {
	id := fmt.Sprint(source, "/", number)
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.at[offset]; ok && before != id {
		return fmt.Errorf("offset %d is record %s here and was %s elsewhere", offset, id, before)
	}
	w.at[offset] = id
	return nil
}

func (w *witness) check(e *client.Event, source uint32, number uint64) error {
	return w.saw(e.Offset, source, number)
}

// raise makes v at least n.
func raise(v *atomic.Uint64, n uint64) {
	for was := v.Load(); was < n; was = v.Load() {
		if v.CompareAndSwap(was, n) {
			return
		}
	}
}

// TestJoinsUnderLoad is B16: readers that subscribe at random offsets while four
// publishers are at full speed see everything from there to the end, once, in order;
// the ones that are cut off are told where, exactly.
func TestJoinsUnderLoad(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	readers := scaled(200, 48)
	most := scaled(16_000, 4_000) // records; publishers stop there if readers take for ever
	n := startNode(t)
	s := n.create("s", queue(8, 64<<10, "DropNew"))
	seen := newWitness()
	ctx := bounded(t)
	stop, stopped := context.WithCancel(ctx)
	defer stopped()

	var end atomic.Uint64 // after the last acknowledged record
	publishing, _ := errgroup.WithContext(ctx)
	for source := range uint32(4) {
		p := publisher(t, n.dial(), s)
		publishing.Go(func() error {
			for i := uint64(0); stop.Err() == nil && i < most/4; i += 32 {
				acked, err := tryPublish(ctx, p, source, i, 32, 100)
				if err != nil {
					return err
				}
				for _, a := range acked {
					if err := seen.saw(a.offset, source, a.number); err != nil {
						return err
					}
					raise(&end, a.offset+1)
				}
			}
			return nil
		})
	}
	eventually(t, "there is something to read", func() bool { return end.Load() > 100 })

	var subs []*reader
	for i := range readers {
		c := n.dial() // a few share one
		for range 8 {
			r := newReader(subscribe(t, c, s, client.SubscribeConfig{
				Start: client.At(rng.Uint64N(end.Load() + 1)), NoReconnect: i%2 == 0,
			}))
			r.check = seen.check
			subs = append(subs, r)
		}
		if uint64(len(subs)) >= readers {
			break
		}
	}
	stopped()
	if err := publishing.Wait(); err != nil {
		t.Fatal(err)
	}
	var lagged atomic.Int64
	var reading errgroup.Group
	for _, r := range subs {
		reading.Go(func() error {
			for {
				err := r.until(ctx, end.Load())
				notice, cut := errors.AsType[*client.LaggedError](err)
				if !cut {
					return err
				}
				lagged.Add(1)
				if notice.ResumeFrom != r.next {
					return fmt.Errorf("told to resume at %d, has everything below %d", notice.ResumeFrom, r.next)
				}
				c := n.dial()
				if r.sub, err = c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.At(r.next)}); err != nil {
					return err
				}
			}
		})
	}
	if err := reading.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, %d readers, %d lag notices", end.Load(), len(subs), lagged.Load())
}

// TestLongReplayIsNotCutShort is B22: a reader slower than the publisher gets all of
// its history; what is below live_offset is never dropped, whatever the queue.
func TestLongReplayIsNotCutShort(t *testing.T) {
	t.Parallel()
	history := scaled(5_000, 1_500)
	const size = 256
	n := startNode(t, func(c *broker.Config) { c.Streams.TailBytes = 128 << 10 })
	s := n.create("s", queue(256, 64<<10, "DropNew"))
	p := publisher(t, n.dial(), s)
	publish(t, p, 1, 0, history, size)
	cut := false
	var r *reader
	r = newReader(subscribe(t, n.dial(window(16<<10)), s, client.SubscribeConfig{
		Start:    client.Earliest(),
		OnLagged: func(at, _ uint64) { cut = cut || at < history },
		OnLost:   func(err error) { t.Errorf("lost at %d: %v", r.next, err) },
	}))
	r.check = numbered(0)
	if live := r.sub.LiveOffset(); live != history {
		t.Fatalf("live from %d, want %d", live, history)
	}
	// For each eight records that it reads two more are published: it is far behind
	// with more to come all the time.
	ctx := bounded(t)
	total := history
	for r.next < history {
		for range 8 {
			if _, err := r.one(ctx); err != nil {
				t.Fatal(err)
			}
		}
		publish(t, p, 1, total, 2, size)
		total += 2
	}
	if cut {
		t.Error("history was cut off")
	}
	if err := r.until(ctx, total); err != nil {
		t.Fatal(err)
	}
}

// TestOffsetsAreConsecutiveAcrossSegments is B25: readers from random offsets of a log
// of many segments never jump.
func TestOffsetsAreConsecutiveAcrossSegments(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	records := scaled(60_000, 20_000)
	segment := int64(256 << 10)
	if raceEnabled {
		segment = 64 << 10
	}
	n := startNode(t, func(c *broker.Config) { c.Streams.SegmentBytes, c.Streams.TailBytes = segment, 128<<10 })
	s := n.create("s")
	publish(t, publisher(t, n.dial(), s), 1, 0, records, 64)
	c := n.dial()
	ctx := bounded(t)
	for range 4 {
		var g errgroup.Group
		for range 8 {
			r := newReader(subscribe(t, c, s, client.SubscribeConfig{Start: client.At(rng.Uint64N(records))}))
			r.check = numbered(0)
			g.Go(func() error { return errors.Join(r.until(ctx, records), r.sub.Close()) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if bytes := n.shard("s").LogBytes; bytes < 15*segment {
		t.Errorf("the log has %d bytes, too few segments of %d for this test", bytes, segment)
	}
}
