package faults_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// resumeAt is where an ended subscription says that its reader goes on.
func resumeAt(err error) (uint64, bool) {
	if lagged, ok := errors.AsType[*client.LaggedError](err); ok {
		return lagged.ResumeFrom, true
	}
	if lost, ok := errors.AsType[*client.LostError](err); ok && lost.Resumable {
		return lost.Position, true
	}
	return 0, false
}

// TestStalledReaderAmongFastOnes is B01: nine readers that keep reading get every
// record in order while a tenth has stopped, and the publisher is refused nothing.
func TestStalledReaderAmongFastOnes(t *testing.T) {
	t.Parallel()
	const fast, size = 9, 1 << 10
	records := scaled(20_000, 4_000)
	n := startNode(t)
	s := n.create("s", queue(8, 64<<10, "DropNew"))

	stalled := newReader(subscribe(t, n.dial(window(16<<10)), s, client.SubscribeConfig{NoReconnect: true}))
	stalled.check = numbered(0)
	var resumed atomic.Int64
	ctx := bounded(t)
	var readers errgroup.Group
	for range fast / 3 {
		c := n.dial()
		for range 3 {
			r := newReader(subscribe(t, c, s, client.SubscribeConfig{OnResumed: func(client.Resumed) { resumed.Add(1) }}))
			r.check = numbered(0)
			readers.Go(func() error { return r.until(ctx, records) })
		}
	}
	publish(t, publisher(t, n.dial(), s), 1, 0, records, size)
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the fast readers resumed %d times", resumed.Load())
	m := n.metrics()
	if ok, all := sum(m, "felix_publish_records_total"), sum(m, "felix_publish_shed_total"); ok != float64(records) || all != 0 {
		t.Errorf("%v records accepted, want %d; %v publishes shed", ok, records, all)
	}

	// The stalled one comes to life, is told where it was cut off, and gets the rest.
	err := stalled.toEnd(ctx)
	at, ok := resumeAt(err)
	if !ok || at != stalled.next || at == records {
		t.Fatalf("the stalled reader stands at %d and was told %v", stalled.next, err)
	}
	rest := newReader(subscribe(t, n.dial(), s, client.SubscribeConfig{Start: client.At(at)}))
	rest.check = numbered(0)
	if err := rest.until(ctx, records); err != nil {
		t.Fatal(err)
	}
}

// paced publishes a chunk at a time and lets the readers come up to its end before the
// next one, so that no reader but a stalled one can lag by more than a chunk.
func paced(ctx context.Context, p *client.Publisher, records, chunk uint64, size int, readers []*reader) error {
	for at := uint64(0); at < records; at += chunk {
		if _, err := tryPublish(ctx, p, 1, at, chunk, size); err != nil {
			return err
		}
		var g errgroup.Group
		for _, r := range readers {
			g.Go(func() error { return r.until(ctx, at+chunk) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// TestStalledSubscriptionOnASharedConnection is B02: of three subscriptions on one
// connection only the stalled one ends.
func TestStalledSubscriptionOnASharedConnection(t *testing.T) {
	t.Parallel()
	const chunk, size = 100, 4 << 10
	records := scaled(10_000, 1_500)
	n := startNode(t)
	for _, durability := range []string{"Durable", "Memory"} {
		t.Run(durability, func(t *testing.T) {
			s := n.create(durability, queue(4096, 5*chunk*size/2, "DropNew"), func(s *admin.StreamSpec) { s.Durability = durability })
			c := n.dial(window(64 << 10))
			ended := func(error) { t.Error("a subscription that keeps reading was ended") }
			lagged := func(_, _ uint64) { ended(nil) }
			stalled := newReader(subscribe(t, c, s, client.SubscribeConfig{NoReconnect: true}))
			var readers []*reader
			for range 2 {
				r := newReader(subscribe(t, c, s, client.SubscribeConfig{OnLost: ended, OnLagged: lagged}))
				r.check = numbered(0)
				readers = append(readers, r)
			}
			ctx := bounded(t)
			if err := paced(ctx, publisher(t, n.dial(), s, single), records, chunk, size, readers); err != nil {
				t.Fatal(err)
			}
			err := stalled.toEnd(ctx)
			if at, ok := resumeAt(err); !ok || at != stalled.next || at == records {
				t.Errorf("the stalled reader stands at %d and was told %v", stalled.next, err)
			}
			if conns := c.Connections(); len(conns) != 1 || conns[0].Subscriptions != 2 {
				t.Errorf("connections afterwards: %+v", conns)
			}
		})
	}
}

// TestSlowConsumerIsNamedAndItsConnectionLives is B04: the subscription goes, the
// connection and the publisher on it stay, and the operator sees who it was. It is also
// B67: the write that is given up is in the middle of a frame larger than the window.
func TestSlowConsumerIsNamedAndItsConnectionLives(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *broker.Config) { c.Egress.SlowConsumerTimeout = admin.Duration(3 * time.Second) })
	s := n.create("s")
	c := n.dial(window(32 << 10))
	lost := make(chan error, 1)
	r := newReader(subscribe(t, c, s, client.SubscribeConfig{OnLost: func(err error) { lost <- err }}))
	r.check = numbered(0)
	p := publisher(t, c, s)
	publish(t, p, 1, 0, 1, 1<<20) // far more than the window takes

	// Who is slow? While it is blocked it has a name, in the list and in the metrics.
	var slow admin.Subscription
	eventually(t, "the stalled subscription is listed as lagging", func() bool {
		l, err := n.http().Subscriptions(bounded(t), admin.SubscriptionQuery{Sort: admin.SortLag, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Subscriptions) == 1 {
			slow = l.Subscriptions[0]
		}
		return slow.LagRecords > 0
	})
	if slow.Name != adminName("s") || slow.Remote == "" || slow.Principal == "" {
		t.Errorf("the slow subscription is shown as %+v", slow)
	}
	eventually(t, "the stalled subscription is ended as slow", func() bool {
		return sum(n.metrics(), "felix_subscriptions_ended_total", `reason="slow_consumer"`) == 1
	})
	publish(t, p, 1, 1, 100, 100)
	if conns := c.Connections(); len(conns) != 1 {
		t.Errorf("%d connections, want the one", len(conns))
	}

	// The half frame is thrown away with its stream, and the record comes once, whole.
	ctx := bounded(t)
	if err := r.until(ctx, 101); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		t.Logf("the reader was told: %v", err)
	default:
		t.Error("the reader was not told that its stream was reset")
	}
	m := n.metrics()
	if ended := sum(m, "felix_subscriptions_ended_total"); ended != sum(m, "felix_subscriptions_ended_total", `reason="slow_consumer"`) {
		t.Errorf("subscriptions ended: %v in all", ended)
	}
	if got := sum(m, "felix_subscription_lag_records", `stream="t1/default/s"`, `subscription="`+strconv.FormatUint(n.subscriptions("s")[0].ID, 10)+`"`); got != 0 {
		t.Errorf("lag of a reader that has everything: %v", got)
	}
}

// TestNothingIsLeftOfOverflownSubscriptions is B05: registry, goroutines and gauges are
// as before once many subscriptions have overflown and gone.
func TestNothingIsLeftOfOverflownSubscriptions(t *testing.T) {
	t.Parallel()
	const conns, each, records, size = 4, 125, 64, 4 << 10
	p := startProcess(t, nil, func(c *broker.Config) { c.Egress.SlowConsumerTimeout = admin.Duration(500 * time.Millisecond) })
	s := p.create("s", queue(8, 64<<10, "DropNew"))
	pub := publisher(t, p.dial(), s, single)
	publish(t, pub, 1, 0, 1, size)
	before := p.metrics()
	var subs []*client.Subscription
	var clients []*client.Client
	for range conns {
		c, err := client.Dial(bounded(t), p.clientConfig())
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		for range each {
			subs = append(subs, subscribe(t, c, s, client.SubscribeConfig{NoReconnect: true}))
		}
	}
	// Each gets more than its window and its queue hold.
	publish(t, pub, 1, 1, 4*records, 16<<10)
	eventually(t, "all subscriptions are over", func() bool { return len(p.subscriptions("s")) == 0 })
	m := p.metrics()
	if n := sum(m, "felix_subscriptions"); n != 0 {
		t.Errorf("the gauge says %v subscriptions", n)
	}
	if started, ended := sum(m, "felix_subscriptions_started_total"), sum(m, "felix_subscriptions_ended_total"); started != ended || started != conns*each {
		t.Errorf("%v subscriptions started, %v ended", started, ended)
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, sub := range subs {
		if _, err := sub.Next(t.Context()); err == nil {
			t.Error("a subscription outlived its client")
		}
	}
	for _, gauge := range []string{"felix_connections", "felix_streams_open", "go_goroutines", "felix_stream_subscriptions"} {
		eventually(t, gauge+" is back where it was", func() bool { return sum(p.metrics(), gauge) <= sum(before, gauge) })
	}
}

// TestBlockingReaderIsNotWaitedForForEver is B06: under Block a reader that has stopped
// costs publishers the configured time and no more.
func TestBlockingReaderIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *broker.Config) {
		c.Streams.PublishWait = admin.Duration(200 * time.Millisecond)
		c.Streams.BlockTimeout = admin.Duration(600 * time.Millisecond)
	})
	s := n.create("s", queue(8, 64<<10, "Block"))
	stalled := newReader(subscribe(t, n.dial(window(16<<10)), s, client.SubscribeConfig{NoReconnect: true}))
	p := publisher(t, n.dial(), s, single)
	ctx := bounded(t)
	accepted, refused := uint64(0), 0
	for sum(n.metrics(), "felix_subscriptions") > 0 { // until it is ended
		for range 16 {
			pending, err := p.Publish(ctx, client.Message{Payload: record(1, accepted, 4<<10)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = pending.Wait(ctx)
			if err == nil {
				accepted++
				continue
			}
			refused++
			e, ok := errors.AsType[*client.Error](err)
			if !ok || e.Code != wire.CodeOverloaded || e.Retry != wire.RetryAfter || e.Reason != "subscriber_blocking" {
				t.Fatalf("a publish that waited was told %v", err)
			}
		}
	}
	if refused == 0 {
		t.Error("no publisher was told that it is held up")
	}
	publish(t, p, 1, accepted, 200, 4<<10) // nobody is in the way any more
	err := stalled.toEnd(ctx)
	if at, ok := resumeAt(err); !ok || at != stalled.next {
		t.Errorf("the blocking reader stands at %d and was told %v", stalled.next, err)
	}
	rest := newReader(subscribe(t, n.dial(), s, client.SubscribeConfig{Start: client.At(stalled.next)}))
	rest.check = numbered(0)
	if err := rest.until(ctx, accepted+200); err != nil {
		t.Error(err)
	}
}

// TestBytesHeldForAReaderAreBounded is B09: with entries far below their bound it is
// the bytes that end a reader that has stopped, and what is held for it stays below.
func TestBytesHeldForAReaderAreBounded(t *testing.T) {
	t.Parallel()
	const records, size, bound = 600, 64 << 10, 1 << 20 // 37.5 MiB in all
	n := startNode(t, func(c *broker.Config) { c.Streams.TailBytes = 2 << 20 })
	s := n.create("s", queue(4096, bound, "DropNew"))
	stalled := newReader(subscribe(t, n.dial(window(16<<10)), s, client.SubscribeConfig{NoReconnect: true}))
	p := publisher(t, n.dial(), s, single)
	for at := uint64(0); at < records; at += 20 {
		publish(t, p, 1, at, 20, size)
		if tail := n.shard("s").TailBytes; tail > 4<<20 {
			t.Fatalf("the ring holds %d bytes", tail)
		}
	}
	err := stalled.toEnd(bounded(t))
	if at, ok := resumeAt(err); !ok || at != stalled.next {
		t.Errorf("the reader stands at %d and was told %v", stalled.next, err)
	}
	// What it got is what its window, one write under way and its bound hold.
	if got := stalled.next * size; got > 2*bound {
		t.Errorf("the stalled reader was kept %d bytes, its bound is %d", got, bound)
	}
}

// TestGaugesSurviveTheRace is B10: after subscribing, overflowing and unsubscribing at
// random beside a publisher the gauges are 0, and were never below.
func TestGaugesSurviveTheRace(t *testing.T) {
	t.Parallel()
	const workers, loops = 10, 30
	n := startNode(t, func(c *broker.Config) { c.Egress.SlowConsumerTimeout = admin.Duration(300 * time.Millisecond) })
	s := n.create("s", queue(8, 64<<10, "DropNew"))
	ctx := bounded(t)
	stop, stopped := context.WithCancel(ctx)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		p := publisher(t, n.dial(), s, single)
		for i := uint64(0); stop.Err() == nil; i += 16 {
			if _, err := tryPublish(ctx, p, 1, i, 16, 2<<10); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var g errgroup.Group
	for range workers {
		c := n.dial(window(16 << 10))
		g.Go(func() error {
			for i := range loops {
				sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{NoReconnect: true})
				if err != nil {
					return err
				}
				switch i % 3 {
				case 0: // at once
				case 1: // after some records
					r := newReader(sub)
					if err := r.until(ctx, r.next+8); err != nil {
						if _, ok := resumeAt(err); !ok {
							return err
						}
					}
				case 2: // when it has overflown, or nearly
					for range 50 {
						runtime.Gosched()
					}
				}
				if err := sub.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	watched := make(chan struct{})
	publishing.Go(func() {
		defer close(watched)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for stop.Err() == nil {
			<-tick.C
			for series, v := range n.metrics() {
				if v < 0 {
					t.Errorf("%s is %v", series, v)
				}
			}
		}
	})
	err := g.Wait()
	stopped()
	<-watched
	publishing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all subscriptions are over", func() bool {
		m := n.metrics()
		return sum(m, "felix_subscriptions") == 0 && sum(m, "felix_stream_subscriptions") == 0 &&
			sum(m, "felix_subscriptions_started_total") == workers*loops &&
			sum(m, "felix_subscriptions_ended_total") == workers*loops &&
			sum(m, "felix_ingress_bytes") == 0
	})
}

// TestHeldUpStreamLeavesTheOthers is B11 as far as one broker meets it: publishes to a
// stream that waits (here for a reader under Block) do not hold up those to another
// stream on the same connection.
func TestHeldUpStreamLeavesTheOthers(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *broker.Config) {
		c.Streams.PublishWait, c.Streams.BlockTimeout = admin.Duration(testWait), admin.Duration(2*testWait)
	})
	stuck, free := n.create("stuck", queue(8, 64<<10, "Block")), n.create("free")
	blocker := subscribe(t, n.dial(window(16<<10)), stuck, client.SubscribeConfig{NoReconnect: true})
	c := n.dial()
	p := publisher(t, c, stuck, single)
	ctx := bounded(t)
	var waiting []*client.Pending
	for i := range uint64(256) { // 1 MiB
		k, err := p.Publish(ctx, client.Message{Payload: record(1, i, 4<<10)})
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, k)
	}
	publish(t, publisher(t, c, free), 1, 0, 2_000, 1<<10)
	if conns := c.Connections(); len(conns) != 1 {
		t.Errorf("%d connections, want one for both", len(conns))
	}
	select {
	case <-waiting[len(waiting)-1].Done():
		t.Error("the held-up stream was not held up: the test shows nothing")
	default:
	}
	if err := blocker.Close(); err != nil {
		t.Error(err)
	}
	for i, k := range waiting {
		if _, err := k.Wait(ctx); err != nil {
			t.Fatal(fmt.Errorf("held-up record %d: %w", i, err))
		}
	}
}
