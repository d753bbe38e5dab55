package faults_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// wantCursor checks a typed refusal of a position.
func wantCursor(t *testing.T, err error, want client.CursorError) {
	t.Helper()
	if e, ok := errors.AsType[*client.CursorError](err); !ok || *e != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// TestRecreatedStreamIsAnotherStream is B17: a position in a stream that was deleted
// is never read as one in the stream that has its name now.
func TestRecreatedStreamIsAnotherStream(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for _, durability := range []string{"Durable", "Memory"} {
		t.Run(durability, func(t *testing.T) {
			kind := func(s *admin.StreamSpec) { s.Durability = durability }
			c := n.dial()
			s := n.create(durability, kind)
			publish(t, publisher(t, c, s), 1, 0, 51, 100)
			ctx := bounded(t)
			// One reader is there when it happens, one comes back later.
			there := newReader(subscribe(t, c, s, client.SubscribeConfig{Start: client.Earliest()}))
			if err := there.until(ctx, 51); err != nil {
				t.Fatal(err)
			}
			n.remove(durability)
			if err := there.toEnd(ctx); !errors.Is(err, io.EOF) {
				t.Errorf("a reader of the deleted stream was told %v, want its end", err)
			}
			n.create(durability, kind)
			again := publish(t, publisher(t, n.dial(), s), 2, 0, 100, 100)
			first := again[0].offset
			if first <= 51 {
				t.Fatalf("the new stream begins at %d, where the old one had offsets", first)
			}
			_, err := c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.At(51)})
			wantCursor(t, err, client.CursorError{Reason: "too_old", Requested: 51, Available: first})
			fresh := newReader(subscribe(t, c, s, client.SubscribeConfig{Start: client.Earliest()}))
			fresh.check = numbered(first)
			if err := fresh.until(ctx, first+100); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSubscriptionsGetTheirOwnEvents is B18: after thousands of subscribes and
// unsubscribes on eight connections each live subscription gets its stream's events
// and no others. The event streams of a connection are few (B59), so those that were
// given up must have been closed on both sides.
func TestSubscriptionsGetTheirOwnEvents(t *testing.T) {
	t.Parallel()
	const conns, streams = 8, 4
	loops := scaled(5_000, 600) / conns
	n := startNode(t)
	var names []client.Stream
	for i := range streams {
		names = append(names, n.create(fmt.Sprint("s", i)))
	}
	ctx := bounded(t)
	live := make([][]*reader, conns)
	var churn errgroup.Group
	for k := range conns {
		c := n.dial(func(c *client.Config) { c.MaxSubscriptionsPerConn = streams + 1 })
		for i, s := range names {
			r := newReader(subscribe(t, c, s, client.SubscribeConfig{}))
			source := uint32(i)
			r.check = func(_ *client.Event, from uint32, _ uint64) error {
				if from != source {
					return fmt.Errorf("a reader of stream %d got a record of stream %d", source, from)
				}
				return nil
			}
			live[k] = append(live[k], r)
		}
		churn.Go(func() error {
			for i := range loops {
				sub, err := c.Subscribe(ctx, names[i%streams], client.SubscribeConfig{})
				if err != nil {
					return fmt.Errorf("subscribe %d: %w", i, err)
				}
				if err := sub.Close(); err != nil {
					return err
				}
			}
			if conns := c.Connections(); len(conns) != 1 {
				return fmt.Errorf("%d connections, want one", len(conns))
			}
			return nil
		})
	}
	if err := churn.Wait(); err != nil {
		t.Fatal(err)
	}
	c := n.dial()
	for i, s := range names {
		publish(t, publisher(t, c, s), uint32(i), 0, 50, 100)
	}
	var reading errgroup.Group
	for _, rs := range live {
		for _, r := range rs {
			reading.Go(func() error { return r.until(ctx, 50) })
		}
	}
	if err := reading.Wait(); err != nil {
		t.Error(err)
	}
	eventually(t, "only live subscriptions are left", func() bool {
		m := n.metrics()
		return sum(m, "felix_subscriptions") == conns*streams &&
			sum(m, "felix_subscriptions_started_total")-sum(m, "felix_subscriptions_ended_total") == conns*streams
	})
}

// TestSubscribeAndUnsubscribeForEver is B59: a connection that allows few event
// streams never runs out of them, and the broker holds none that are over.
func TestSubscribeAndUnsubscribeForEver(t *testing.T) {
	t.Parallel()
	loops := scaled(4_000, 500)
	n := startNode(t)
	s := n.create("s", memory)
	publish(t, publisher(t, n.dial(), s), 1, 0, 100, 1<<10)
	c := n.dial(func(c *client.Config) { c.MaxSubscriptionsPerConn = 1 }) // and a margin of 64
	ctx := bounded(t)
	for i := range loops {
		sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.Earliest(), NoReconnect: true})
		if err != nil {
			t.Fatalf("subscribe %d: %v", i, err)
		}
		if i%4 == 0 { // some are in the middle of something
			if err := newReader(sub).until(ctx, 10); err != nil {
				t.Fatal(err)
			}
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if conns := c.Connections(); len(conns) != 1 {
		t.Errorf("%d connections, want one", len(conns))
	}
	eventually(t, "no event stream is left", func() bool {
		m := n.metrics()
		return sum(m, "felix_subscriptions") == 0 && sum(m, "felix_streams_open") <= 4
	})
}

// TestPositionAheadOfARestoredLog is B29: a position past the end of a log that was
// set back is refused at once and names the end.
func TestPositionAheadOfARestoredLog(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := n.create("s")
	publish(t, publisher(t, n.dial(), s), 1, 0, 80, 100)
	n.stop()
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(n.cfg.DataDir)); err != nil {
		t.Fatal(err)
	}
	n.start()
	ctx := bounded(t)
	keeps := newReader(subscribe(t, n.dial(), s, client.SubscribeConfig{}))
	publish(t, publisher(t, n.dial(), s), 1, 80, 21, 100)
	if err := keeps.until(ctx, 101); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n.cfg.DataDir = backup
	n.start()
	want := client.CursorError{Reason: "in_future", Requested: 101, Available: 80}
	_, err := n.dial().Subscribe(ctx, s, client.SubscribeConfig{Start: client.At(101)})
	wantCursor(t, err, want)
	wantCursor(t, keeps.toEnd(ctx), want) // a subscription that was there all the time
}

// TestRetentionThenRestart is B46: after retention and a restart the earliest record is
// the oldest that was kept, and what is older is refused by name.
func TestRetentionThenRestart(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *broker.Config) { c.Streams.SegmentBytes = 64 << 10 })
	s := n.create("s", func(s *admin.StreamSpec) { s.Retention.MaxAge = admin.Duration(time.Second) })
	p := publisher(t, n.dial(), s)
	publish(t, p, 1, 0, 200, 1<<10) // three segments and some
	next := uint64(200)
	eventually(t, "retention has taken the first segments", func() bool {
		publish(t, p, 1, next, 10, 1<<10)
		next += 10
		return n.shard("s").OldestOffset > 0
	})
	n.stop()
	oldest := uint64(0)
	for range 2 {
		n.start()
		kept := n.shard("s")
		if kept.NextOffset != next || kept.OldestOffset < oldest || kept.OldestOffset == 0 {
			t.Fatalf("reopened with offsets %d to %d, want at least %d to %d", kept.OldestOffset, kept.NextOffset, oldest, next)
		}
		oldest = kept.OldestOffset
		c := n.dial()
		ctx := bounded(t)
		sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.At(0)})
		if e, ok := errors.AsType[*client.CursorError](err); !ok || e.Reason != "too_old" || e.Available < oldest {
			t.Errorf("offset 0: got %v, %v, want too_old", sub, err)
		}
		r := newReader(subscribe(t, c, s, client.SubscribeConfig{Start: client.Earliest()}))
		r.check = numbered(0)
		if r.next < oldest || r.next > next {
			t.Errorf("earliest is %d, want between %d and %d", r.next, oldest, next)
		}
		if err := r.until(ctx, next); err != nil {
			t.Error(err)
		}
		publish(t, publisher(t, c, s), 1, next, 1, 1<<10)
		next++
		if err := r.until(ctx, next); err != nil {
			t.Error(err)
		}
		n.stop()
	}
}

// TestCreateCanBeSentAgain is B88: a create whose answer was lost is not refused when
// it is sent again, and what is different is.
func TestCreateCanBeSentAgain(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	ctx := bounded(t)
	spec := admin.StreamSpec{Name: adminName("s"), Shards: 2}
	first, created, err := n.http().CreateStream(ctx, spec, "request-1")
	if err != nil || !created {
		t.Fatalf("create: created %v, %v", created, err)
	}
	n.stop()
	n.start() // the broker has forgotten the request, its catalog has not
	again, created, err := n.http().CreateStream(ctx, spec, "request-1")
	if err != nil || created || again.Incarnation != first.Incarnation {
		t.Errorf("sent again: created %v, incarnation %s (was %s), %v", created, again.Incarnation, first.Incarnation, err)
	}
	spec.Shards = 3
	_, _, err = n.http().CreateStream(ctx, spec, "request-2")
	if e, ok := errors.AsType[*admin.Error](err); !ok || e.Retry != admin.RetryFatal {
		t.Errorf("another stream of the same name: %v", err)
	}
}
