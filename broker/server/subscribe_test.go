package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// fill publishes n records: their own offsets as text.
func (k *control) fill(name string, from, n int) {
	k.t.Helper()
	for i := range n {
		k.publish(publish(uint64(i), name, fmt.Sprint(from+i)))
	}
	for range n {
		if a := k.ack(); !a.OK {
			k.t.Fatalf("publish: %+v", a)
		}
	}
}

func filled(from, n int) (out []received) {
	for i := from; i < from+n; i++ {
		out = append(out, received{uint64(i), fmt.Sprint(i)})
	}
	return out
}

func shardOf(t *testing.T, h *harness, name string) *stream.Shard {
	t.Helper()
	st, err := h.dir.Stream(streamName(name))
	if err != nil {
		t.Fatal(err)
	}
	return shardsOf(st)[0]
}

func TestSubscribeStarts(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	c.authed().fill("s", 0, 10)
	for _, tt := range []struct {
		name  string
		start *wire.Start
		first int
	}{
		{"absent", nil, 10},
		{"latest", &wire.Start{Kind: wire.StartLatest}, 10},
		{"earliest", &wire.Start{Kind: wire.StartEarliest}, 0},
		{"offset", new(wire.StartAt(4)), 4},
		{"end", new(wire.StartAt(10)), 10},
	} {
		sub, e := c.mustSubscribe(&wire.Subscribe{Stream: "s", Start: tt.start})
		want := &wire.Subscribed{SubscriptionID: sub.SubscriptionID, StartOffset: new(uint64(tt.first)), LiveOffset: new(uint64(10))}
		if d := cmp.Diff(want, sub); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if d := cmp.Diff(filled(tt.first, 10-tt.first), e.read(10-tt.first)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		e.s.CancelRead(0)
	}
}

func TestSubscribeRefusals(t *testing.T) {
	h := start(t, func(c *Config) { c.MaxSubscriptions = 2 })
	h.memory("s", 2, func(c *stream.Config) { c.TailBytes = 20 << 10 })
	h.dir.refused[streamName("damaged")] = &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: "not_ready", Message: "the log of shard 0 is damaged",
	}
	c := h.dial()
	k := c.authed()
	for i := range 100 { // far more than the ring holds
		k.publish(publish(uint64(i), "s", strings.Repeat("x", 2000)))
		k.ack()
	}
	oldest := shardOf(t, h, "s").Oldest()
	if oldest == 0 {
		t.Fatal("nothing was evicted")
	}
	for _, tt := range []struct {
		name string
		req  wire.Subscribe
		want wire.Message
	}{
		{"too old", wire.Subscribe{Stream: "s", Start: new(wire.StartAt(0))}, &wire.SubscribeCursorError{Reason: "too_old", Requested: 0, Available: oldest}},
		{"in the future", wire.Subscribe{Stream: "s", Start: new(wire.StartAt(101))}, &wire.SubscribeCursorError{Reason: "in_future", Requested: 101, Available: 100}},
		{"no such stream", wire.Subscribe{Stream: "none"}, &wire.ErrorMsg{Code: "not_found", Retry: "retry_after"}},
		{"no such shard", wire.Subscribe{Stream: "s", Shard: new(uint32(2))}, &wire.ErrorMsg{Code: "invalid_request", Retry: "fatal"}},
		{"damaged", wire.Subscribe{Stream: "damaged"}, &wire.ErrorMsg{Code: "shard_unavailable", Retry: "retry", Detail: &wire.ErrorDetail{Reason: "not_ready"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := c.subscribe(&tt.req)
			if e, ok := got.(*wire.ErrorMsg); ok {
				e.Message = ""
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}

	w := c.authedAs("writer", allFlags, allFeatures)
	w.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
	w.wantError(wire.CodeForbidden)
	w.send(&wire.Subscribe{TenantID: "t2", Namespace: "default", Stream: "s"})
	w.wantError(wire.CodeForbidden)
	w.alive() // none of this ends the stream

	_, first := c.mustSubscribe(&wire.Subscribe{Stream: "s"})
	c.mustSubscribe(&wire.Subscribe{Stream: "s", Shard: new(uint32(1))})
	refused, ok := c.subscribe(&wire.Subscribe{Stream: "s"}).(*wire.ErrorMsg)
	if !ok || refused.Code != "limit_exceeded" || refused.Retry != "fatal" {
		t.Fatalf("third subscription: %+v", refused)
	}
	first.s.CancelRead(0)
	eventually(t, "the first is freed", func() bool { return shardOf(t, h, "s").Info().Subscriptions == 0 })
	eventually(t, "there is room again", func() bool {
		_, ok := c.subscribe(&wire.Subscribe{Stream: "s"}).(*wire.Subscribed)
		return ok
	})
}

// A client that reads no offsets gets frames and an answer without them.
func TestSubscribeWithoutOffsets(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	c.authed().fill("s", 0, 3)
	k := c.open()
	k.send(&wire.Auth{TenantID: testTenant, Token: "reader"})
	k.want(&wire.OK{})
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s", Start: &wire.Start{Kind: wire.StartEarliest}})
	e := c.acceptEvents()
	k.want(&wire.Subscribed{SubscriptionID: e.id})
	for n := 0; n < 3; {
		head, b := e.frame()
		ev, err := wire.DecodeEvents(head.Flags, b)
		if err != nil || head.Flags != wire.FlagEvents {
			t.Fatalf("flags %#x, %v", uint16(head.Flags), err)
		}
		n += int(ev.Records.Count)
	}
}

// B72: the answer comes before the first event, so that a client which reads it
// first gets a history of many times its stream window.
func TestHistoryLargerThanTheWindow(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	const window, n, size = 32 << 10, 256, 16 << 10 // 4 MiB
	k := h.dial().authed()
	for i := range n {
		k.publish(publish(uint64(i), "s", strings.Repeat("x", size)))
	}
	for range n {
		k.ack()
	}
	c := h.dial(func(c *quic.Config) {
		c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow = window, window
		c.InitialConnectionReceiveWindow, c.MaxConnectionReceiveWindow = 4*window, 4*window
	})
	sub, e := c.mustSubscribe(&wire.Subscribe{Stream: "s", Start: &wire.Start{Kind: wire.StartEarliest}})
	if *sub.StartOffset != 0 || *sub.LiveOffset != n {
		t.Errorf("got %+v", sub)
	}
	for i, r := range e.read(n) {
		if r.Offset != uint64(i) || len(r.Payload) != size {
			t.Fatalf("record %d: offset %d, %d bytes", i, r.Offset, len(r.Payload))
		}
	}
}

// Once made, a subscription has nothing to do with its control stream.
func TestSubscriptionOutlivesItsControlStream(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	publisher := c.authed()
	for i, drop := range []func(*control){
		(*control).fin,
		func(k *control) { k.s.CancelRead(0); k.fin() },
		func(k *control) { k.s.CancelRead(0); k.s.CancelWrite(0) },
	} {
		k := c.authed()
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
		e := c.acceptEvents()
		k.message()
		drop(k)
		publisher.fill("s", i, 1)
		if d := cmp.Diff(filled(i, 1), e.read(1)); d != "" {
			t.Fatalf("way %d (-want +got):\n%s", i, d)
		}
		e.s.CancelRead(0)
	}
	eventually(t, "only the publisher's stream is open", func() bool { return h.server.Stats().Streams == 1 })
}

// A dropped event stream is noticed without a record to send.
func TestStopSendingFreesAtOnce(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	_, e := c.mustSubscribe(&wire.Subscribe{Stream: "s"})
	e.s.CancelRead(0)
	eventually(t, "no subscription", func() bool { return shardOf(t, h, "s").Info().Subscriptions == 0 })

	c.mustSubscribe(&wire.Subscribe{Stream: "s"})
	_ = c.conn.CloseWithError(0, "")
	eventually(t, "no subscription", func() bool { return shardOf(t, h, "s").Info().Subscriptions == 0 })
	eventually(t, "nothing open", func() bool { return h.server.Stats() == Stats{} })
}

// B59: streams are closed on both sides, so that the limits of neither are used up.
func TestSubscribeAndCancelManyTimes(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial(func(c *quic.Config) { c.MaxIncomingUniStreams = 64 })
	for range n {
		_, e := c.mustSubscribe(&wire.Subscribe{Stream: "s"})
		e.s.CancelRead(0)
	}
	eventually(t, "nothing open", func() bool {
		return h.server.Stats().Streams == 0 && shardOf(t, h, "s").Info().Subscriptions == 0
	})
}

// A client that allows no more event streams is told, in bounded time.
func TestEventStreamCredit(t *testing.T) {
	h := start(t, func(c *Config) { c.EventStreamWait = 100 * time.Millisecond })
	h.memory("s", 1, nil)
	c := h.dial(func(c *quic.Config) { c.MaxIncomingUniStreams = 1 })
	_, e := c.mustSubscribe(&wire.Subscribe{Stream: "s"})
	k := c.authed()
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
	if got := k.wantError(wire.CodeOverloaded); got.Retry != "retry_after" || got.Detail.RetryAfterMS == 0 {
		t.Errorf("got %+v", got)
	}
	if n := shardOf(t, h, "s").Info().Subscriptions; n != 1 {
		t.Errorf("%d subscriptions", n)
	}
	e.s.CancelRead(0)
	eventually(t, "a new one works", func() bool {
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
		_, ok := k.message().(*wire.Subscribed)
		return ok
	})
	c.acceptEvents()
}

// B18: ids never collide, and each subscription gets its own stream's events.
func TestSubscriptionIDs(t *testing.T) {
	const conns, rounds = 4, 50
	h := start(t, nil)
	for i := range conns {
		h.memory(fmt.Sprint("s", i), 1, nil)
	}
	var mu sync.Mutex
	ids := make(map[uint64]bool)
	last := make([]*events, conns)
	clients := make([]*client, conns)
	for i := range clients {
		clients[i] = h.dial()
	}
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for r := range rounds {
				sub, e := c.mustSubscribe(&wire.Subscribe{Stream: fmt.Sprint("s", i)})
				mu.Lock()
				if ids[sub.SubscriptionID] {
					t.Errorf("id %d was given twice", sub.SubscriptionID)
				}
				ids[sub.SubscriptionID] = true
				mu.Unlock()
				if r < rounds-1 {
					e.s.CancelRead(0)
				} else {
					last[i] = e
				}
			}
		})
	}
	wg.Wait()
	k := clients[0].authed()
	for i := range conns {
		k.publish(publish(uint64(i), fmt.Sprint("s", i), fmt.Sprint("for s", i)))
		k.ack()
	}
	for i, e := range last {
		if d := cmp.Diff([]received{{0, fmt.Sprint("for s", i)}}, e.read(1)); d != "" {
			t.Errorf("subscription of s%d (-want +got):\n%s", i, d)
		}
	}
}

// B19: a shard that goes between the decision and the registration: a typed refusal,
// or a subscription that ends; never a silent one.
func TestSubscribeWhileTheStreamIsDeleted(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	served, refused := 0, 0
	for i := range 100 {
		name := fmt.Sprint("s", i)
		h.memory(name, 1, nil)
		k := c.authed()
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: name})
		if i%3 == 0 {
			time.Sleep(time.Duration(i) * 5 * time.Microsecond) // moves the race
		}
		h.remove(name)
		switch m := k.message().(type) {
		case *wire.ErrorMsg:
			refused++
			if m.Code != "not_found" {
				t.Fatalf("refused with %+v", m)
			}
		case *wire.Subscribed:
			served++
			if _, _, err := c.acceptEvents().next(); !errors.Is(err, io.EOF) {
				t.Fatalf("event stream of a deleted stream: %v", err)
			}
		default:
			t.Fatalf("got %s", m.MessageType())
		}
	}
	t.Logf("%d served, %d refused", served, refused)
}

// The lookup that is out of date: the stream is gone when the shard is asked.
func TestSubscribeAtAClosedShard(t *testing.T) {
	h := start(t, nil)
	st := h.memory("s", 1, nil)
	c := h.dial()
	if err := shardsOf(st)[0].Close(t.Context(), stream.EndDeleted); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if e, ok := c.subscribe(&wire.Subscribe{Stream: "s"}).(*wire.ErrorMsg); !ok || e.Code != "not_found" {
		t.Fatalf("got %+v", e)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("refused after %s", took)
	}
}

// B21: what was committed before a stream was deleted is delivered, then FIN.
func TestDeletedStreamDeliversTheRest(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	_, e := c.mustSubscribe(&wire.Subscribe{Stream: "s"})
	c.authed().fill("s", 0, 3)
	h.remove("s")
	if d := cmp.Diff(filled(0, 3), e.read(3)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, _, err := e.next(); !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v, want a FIN", err)
	}
	k := c.authed()
	k.publish(publish(1, "s", "x"))
	if a := k.ack(); a.Code != wire.CodeNotFound {
		t.Errorf("publish to the deleted stream: %+v", a)
	}
}

// A name that is used again is found again by a session that knew the old stream.
func TestRecreatedStream(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	k := h.dial().authed()
	k.fill("s", 0, 2)
	h.remove("s")
	h.memory("s", 1, func(c *stream.Config) { c.First = 100 })
	k.publish(publish(1, "s", "x"))
	if a := k.ack(); !a.OK || a.Offset != 100 {
		t.Errorf("got %+v", a)
	}
}

func TestShutdown(t *testing.T) {
	h := start(t, nil)
	stuck := h.held("stuck")
	h.memory("s", 1, nil)
	c := h.dial()
	_, e := c.mustSubscribe(&wire.Subscribe{Stream: "s"})
	k := c.authed()
	k.publish(publish(1, "stuck", "x"))
	eventually(t, "the publish is taken", func() bool { return stuck.appended() == 1 })
	k.fill("s", 0, 5)

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.server.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("draining with an unanswered publish: %v", err)
	}
	// Everything new is refused with the code that sends clients elsewhere.
	late := c.open()
	late.send(&wire.Auth{TenantID: testTenant, Token: "good", ClientFlags: new(allFlags), ClientFeatures: allFeatures})
	late.wantError(wire.CodeDraining)
	late.wantEnd()
	k.publish(publish(2, "s", "x"))
	if a := k.ack(); a.OK || a.Code != wire.CodeDraining || a.Retry != wire.RetryNow {
		t.Errorf("publish while draining: %+v", a)
	}
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
	k.wantError(wire.CodeDraining)
	k.send(&wire.Topology{})
	k.want(&wire.TopologyView{Brokers: []wire.Broker{}})
	ctx, cancelDial := context.WithTimeout(t.Context(), testWait)
	defer cancelDial()
	if _, err := quic.DialAddr(ctx, h.server.Addr().String(), clientTLS(), &quic.Config{HandshakeIdleTimeout: 300 * time.Millisecond}); err == nil {
		t.Error("a new connection was accepted")
	}

	done := make(chan struct{})
	go func() { h.stop(); close(done) }()
	if a := k.ack(); !a.OK || a.RequestID != 1 {
		t.Errorf("the publish from before: %+v", a)
	}
	if d := cmp.Diff(filled(0, 5), e.read(5)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if code := e.resetCode(); code != 1 {
		t.Errorf("event stream reset with %d, want 1", code)
	}
	if code := c.closeCode(); code != closeShutdown {
		t.Errorf("connection closed with %d, want 0", code)
	}
	<-done
}

// A reset does not overtake the hello and the records before it: a client that knows
// nothing of its subscription cannot resume it.
func TestResetComesAfterTheRest(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	for i := range 20 {
		name := fmt.Sprint("s", i)
		st := h.memory(name, 1, nil)
		k := c.authed()
		k.fill(name, 0, 10)
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: name, Start: &wire.Start{Kind: wire.StartEarliest}})
		if m, ok := k.message().(*wire.Subscribed); !ok {
			t.Fatalf("got %+v", m)
		}
		if err := shardsOf(st)[0].Close(t.Context(), stream.EndShutdown); err != nil {
			t.Fatal(err)
		}
		e := c.acceptEvents()
		if d := cmp.Diff(filled(0, 10), e.read(10)); d != "" {
			t.Fatalf("round %d (-want +got):\n%s", i, d)
		}
		if code := e.resetCode(); code != 1 {
			t.Fatalf("round %d: reset with %d", i, code)
		}
	}
}

// A connection that goes takes its streams along a moment before it is over itself: that
// is not the client's cancelling one.
func TestEndOfConnectionIsNotTheClients(t *testing.T) {
	c := &connection{ctx: t.Context()} // not over yet
	for want, err := range map[metrics.EndReason]error{
		metrics.EndClient:     fmt.Errorf("write: %w", &quic.StreamError{Remote: true}),
		metrics.EndConnection: fmt.Errorf("write: %w", &quic.ApplicationError{Remote: true}),
	} {
		if got := c.endReason(stream.End{Reason: stream.EndCancelled, Err: err}); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
