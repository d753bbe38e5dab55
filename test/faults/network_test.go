package faults_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/client"
)

// TestPathMTUShrinks is B62: when large datagrams stop getting through, both ways go
// on with smaller ones, and what is idle but for pings is still good when it is used.
func TestPathMTUShrinks(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := n.create("s")
	path := newProxy(t, n.addr)
	// The reader, the publisher and one that is idle meanwhile have a path each.
	var lost atomic.Int32
	r := newReader(subscribe(t, n.dial(via(path)), s, client.SubscribeConfig{OnLost: func(err error) {
		lost.Add(1)
		t.Logf("the reader's connection: %v", err)
	}}))
	r.check = numbered(0)
	idle := newReader(subscribe(t, n.dial(via(path)), s, client.SubscribeConfig{OnLost: func(err error) {
		t.Logf("the idle reader's connection: %v", err)
	}}))
	idle.check = numbered(0)
	p := publisher(t, n.dial(via(path)), s, func(c *client.PublisherConfig) { c.Idempotent = true })
	ctx := bounded(t)
	// Enough for path MTU discovery to end where it wants to.
	const before, after, size = 3_000, 300, 4 << 10
	publish(t, p, 1, 0, before, size)
	if err := r.until(ctx, before); err != nil {
		t.Fatal(err)
	}
	if err := idle.until(ctx, before); err != nil {
		t.Fatal(err)
	}
	path.largerThan.Store(1300)
	publish(t, p, 1, before, after, size)
	if err := r.until(ctx, before+after); err != nil {
		t.Fatal(err)
	}
	if err := idle.until(ctx, before+after); err != nil {
		t.Fatal(err)
	}
	if path.lost.Load() == 0 {
		t.Error("no datagram was too large: the test shows nothing")
	}
	t.Logf("%d datagrams lost, the reader resumed %d times", path.lost.Load(), lost.Load())
}

// TestOneWayCut is B63, the cut: when datagrams get through in one direction only, a
// publisher and a reader are told within the time of a dead connection.
func TestOneWayCut(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := n.create("s")
	for _, way := range []struct {
		name string
		cut  func(*proxy) *atomic.Bool
	}{
		{"towards the broker", func(p *proxy) *atomic.Bool { return &p.cutUp }},
		{"towards the client", func(p *proxy) *atomic.Bool { return &p.cutDown }},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			path := newProxy(t, n.addr)
			c := n.dial(via(path), byDefault)
			p := publisher(t, c, s)
			sub := subscribe(t, c, s, client.SubscribeConfig{NoReconnect: true})
			ctx := bounded(t)
			way.cut(path).Store(true)
			begin := time.Now()
			pending, err := p.Publish(ctx, client.Message{Payload: record(9, 0, 100)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = pending.Wait(ctx)
			if !errors.Is(err, client.ErrOutcomeUnknown) && !errors.Is(err, client.ErrRetryable) {
				t.Errorf("the publisher was told %v", err)
			}
			t.Logf("the publisher was told after %s", time.Since(begin))
			for err = error(nil); err == nil; {
				_, err = sub.Next(ctx) // what got through before the end is fine
			}
			if _, ok := errors.AsType[*client.LostError](err); !ok {
				t.Errorf("the reader was told %v", err)
			}
			took := time.Since(begin)
			t.Logf("the reader was told after %s", took)
			if took > 10*time.Second+slack {
				t.Errorf("it took %s to notice", took)
			}
			way.cut(path).Store(false)
			publish(t, p, 9, 1, 1, 100) // the publisher finds its way back
		})
	}
}

// slack is what a busy machine may add to a bound that is in the outcome itself.
const slack = 5 * time.Second

// TestKillWithAPublishInFlight is B63, the kill: the caller of a publish that is under
// way when the broker dies has its answer within 10 s.
func TestKillWithAPublishInFlight(t *testing.T) {
	t.Parallel()
	b := startProcess(t, nil)
	s := b.create("s")
	p := publisher(t, b.dial(byDefault), s)
	publish(t, p, 1, 0, 10, 100)
	ctx := bounded(t)
	b.kill()
	begin := time.Now()
	pending, err := p.Publish(ctx, client.Message{Payload: record(1, 10, 100)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Wait(ctx); !errors.Is(err, client.ErrOutcomeUnknown) && !errors.Is(err, client.ErrRetryable) {
		t.Errorf("the publisher was told %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second+slack {
		t.Errorf("it took %s", took)
	}
}

// TestKillAndRestartKeepsASubscription is B35: a subscription object outlives kill -9
// of the broker and goes on at the next offset. It is also B48 as far as a process
// meets it: whatever was acknowledged is there.
func TestKillAndRestartKeepsASubscription(t *testing.T) {
	t.Parallel()
	b := startProcess(t, nil)
	s := b.create("s")
	var resumed atomic.Int32
	r := newReader(subscribe(t, b.dial(byDefault), s, client.SubscribeConfig{
		Start: client.Earliest(), OnResumed: func(client.Resumed) { resumed.Add(1) },
	}))
	seen := newWitness()
	r.check = seen.check
	ctx := bounded(t)
	for round := range uint64(3) {
		p := publisher(t, b.dial(), s)
		for _, a := range publish(t, p, uint32(round), 0, 1_000, 100) {
			if err := seen.saw(a.offset, uint32(round), a.number); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.until(ctx, 500*(2*round+1)); err != nil { // some are not read yet
			t.Fatal(err)
		}
		b.kill()
		b.start()
	}
	if err := r.until(ctx, 3_000); err != nil {
		t.Fatal(err)
	}
	publish(t, publisher(t, b.dial(), s), 9, 0, 1, 100)
	if err := r.until(ctx, 3_001); err != nil {
		t.Fatal(err)
	}
	if resumed.Load() == 0 {
		t.Error("the subscription never resumed: the test shows nothing")
	}
}

// TestWithoutOffload is B61: with segmentation offload switched off everything is
// delivered all the same.
func TestWithoutOffload(t *testing.T) {
	t.Parallel()
	b := startProcess(t, []string{"QUIC_GO_DISABLE_GSO=true", "QUIC_GO_DISABLE_ECN=true"})
	if on := sum(b.metrics(), "felix_udp_gso_enabled"); on != 0 {
		t.Error("the broker says that it uses the offload")
	}
	s := b.create("s")
	r := newReader(subscribe(t, b.dial(), s, client.SubscribeConfig{}))
	r.check = numbered(0)
	records := scaled(4_000, 500)
	publish(t, publisher(t, b.dial(), s), 1, 0, records, 4<<10)
	if err := r.until(bounded(t), records); err != nil {
		t.Fatal(err)
	}
}

// TestLagNoticeIsAlwaysReadable is B69: a reader that is slow, not gone, reads all
// that it was owed and then the notice; it is never replaced by a reset.
func TestLagNoticeIsAlwaysReadable(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := n.dial(window(16 << 10))
	ctx := bounded(t)
	for i := range scaled(30, 10) {
		s := n.create(fmt.Sprint("s", i), queue(8, 64<<10, "DropNew"), memory)
		r := newReader(subscribe(t, c, s, client.SubscribeConfig{NoReconnect: true}))
		r.check = numbered(0)
		p := publisher(t, n.dial(), s, single)
		for at := range 40 + i { // one by one, so that each is an entry of the queue
			publish(t, p, 1, at, 1, 4<<10)
		}
		err := r.toEnd(ctx)
		notice, ok := errors.AsType[*client.LaggedError](err)
		if !ok || notice.ResumeFrom != r.next {
			t.Fatalf("run %d: a reader with everything below %d was told %v", i, r.next, err)
		}
	}
}

// TestRecordLargerThanTheWindow is B51: records many times as large as what the client
// lets the broker send ahead are delivered, alone, and so are those around them.
func TestRecordLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := n.create("s")
	p := publisher(t, n.dial(), s)
	sizes := []int{100, 128 << 10, 100, 1 << 20, 64 << 10, int(scaled(6<<20, 2<<20)), 100}
	for i, size := range sizes {
		publish(t, p, 1, uint64(i), 1, size)
	}
	ctx := bounded(t)
	for from := range sizes {
		r := newReader(subscribe(t, n.dial(window(16<<10)), s, client.SubscribeConfig{Start: client.At(uint64(from))}))
		r.check = func(e *client.Event, source uint32, number uint64) error {
			if want := sizes[e.Offset]; len(e.Payload) != want {
				return fmt.Errorf("record %d has %d bytes, want %d", e.Offset, len(e.Payload), want)
			}
			return numbered(0)(e, source, number)
		}
		if err := r.until(ctx, uint64(len(sizes))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplayLargerThanEveryWindow is B72: a history of many times the stream's and the
// connection's window flows to a client that waits for the answer first.
func TestReplayLargerThanEveryWindow(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *broker.Config) { c.Streams.TailBytes = 1 << 20 })
	s := n.create("s")
	records := scaled(1_024, 256)
	publish(t, publisher(t, n.dial(), s), 1, 0, records, 16<<10) // 16 MiB
	c := n.dial(window(32<<10), func(c *client.Config) { c.MaxSubscriptionsPerConn = 3 })
	var readers []*reader
	for range 3 { // all of them before anybody reads
		r := newReader(subscribe(t, c, s, client.SubscribeConfig{Start: client.Earliest()}))
		r.check = numbered(0)
		readers = append(readers, r)
	}
	ctx := bounded(t)
	for _, r := range readers {
		if err := r.until(ctx, records); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBacklogDoesNotStarveLiveSubscriptions is B73: on one connection with a
// subscription that works through a large backlog, 20 others get their events while it
// has barely moved. What is measured is how much of the backlog went past meanwhile.
func TestBacklogDoesNotStarveLiveSubscriptions(t *testing.T) {
	t.Parallel()
	const live, size = 20, 32 << 10
	records := scaled(1_024, 256)
	rounds := scaled(50, 10)
	n := startNode(t, func(c *broker.Config) { c.Streams.TailBytes = 1 << 20 })
	backlog := n.create("backlog")
	publish(t, publisher(t, n.dial(), backlog), 1, 0, records, size)
	c := n.dial()
	pub := n.dial()
	var readers []*reader
	var publishers []*client.Publisher
	for i := range live {
		s := n.create(fmt.Sprint("live", i), memory)
		readers = append(readers, newReader(subscribe(t, c, s, client.SubscribeConfig{})))
		publishers = append(publishers, publisher(t, pub, s))
	}
	ctx := bounded(t)
	var past atomic.Uint64 // backlog records delivered
	enough := make(chan struct{})
	var replay errgroup.Group
	replay.Go(func() error {
		for { // again and again, so that it is always busy
			sub, err := c.Subscribe(ctx, backlog, client.SubscribeConfig{Start: client.Earliest()})
			if err != nil {
				return err
			}
			old := newReader(sub)
			old.check = numbered(0)
			for old.next < records {
				select {
				case <-enough:
					return sub.Close()
				default:
				}
				if err := old.until(ctx, old.next+1); err != nil {
					return err
				}
				past.Add(1)
			}
			if err := sub.Close(); err != nil {
				return err
			}
		}
	})
	eventually(t, "the replay is under way", func() bool { return past.Load() > 0 })
	var passed []uint64
	var took []time.Duration
	for i := range rounds {
		at, begin := past.Load(), time.Now()
		for k, p := range publishers {
			publish(t, p, uint32(k), i, 1, 100)
		}
		for _, r := range readers {
			if err := r.until(ctx, i+1); err != nil {
				t.Fatal(err)
			}
		}
		passed, took = append(passed, past.Load()-at), append(took, time.Since(begin))
	}
	close(enough)
	if err := replay.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(passed)
	slices.Sort(took)
	median, worst := passed[rounds/2], passed[rounds-1]
	t.Logf("for 20 events on 20 subscriptions: median %d, worst %d backlog records of 32 KiB went past; %s, worst %s",
		median, worst, took[rounds/2], took[rounds-1])
	if median > records/4 {
		t.Errorf("%d backlog records of %d KiB went past before %d small events had arrived", median, size>>10, live)
	}
}
