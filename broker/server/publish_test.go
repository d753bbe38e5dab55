package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

func TestPublishAcked(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	k := c.authed()
	k.publish(publish(7, "s", "a", "b"))
	k.publish(publish(8, "s", "c"))
	got := map[uint64]wire.Ack{}
	for range 2 {
		a := k.ack()
		got[a.RequestID] = a
	}
	want := map[uint64]wire.Ack{
		7: {OK: true, RequestID: 7, HasOffset: true, Offset: 0},
		8: {OK: true, RequestID: 8, HasOffset: true, Offset: 2},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("acks (-want +got):\n%s", d)
	}

	// A client that did not offer it gets no offset.
	k = c.authedAs("good", wire.FlagPublish|wire.FlagPublishAcked|wire.FlagAck, 0)
	k.publish(publish(9, "s", "d"))
	if d := cmp.Diff(wire.Ack{OK: true, RequestID: 9}, k.ack()); d != "" {
		t.Errorf("ack (-want +got):\n%s", d)
	}
}

func TestPublishKeyedGoesToItsShard(t *testing.T) {
	h := start(t, nil)
	st := h.memory("s", 3, nil)
	k := h.dial().authed()
	want := [3]uint64{}
	for i := range 30 {
		p := publish(uint64(i), "s", "x")
		p.Keyed, p.Key = true, fmt.Appendf(nil, "key-%d", i)
		if i == 0 {
			p.Key = nil // an empty key is a key
		}
		k.publish(p)
		want[wire.ShardOf(p.Key, true, 3, wire.RoutingModulo)]++
	}
	for range 30 {
		if a := k.ack(); !a.OK {
			t.Fatalf("ack %+v", a)
		}
	}
	for i, s := range shardsOf(st) {
		if s.Mark() != want[i] {
			t.Errorf("shard %d has %d records, want %d", i, s.Mark(), want[i])
		}
	}
}

func TestPublishUnacked(t *testing.T) {
	h := start(t, nil)
	st := h.memory("s", 1, nil)
	k := h.dial().authed()
	unacked := publish(0, "s", "a")
	unacked.Acked = false
	k.publish(unacked)
	// Refusals of unacked publishes are dropped: the next frame that the client sees
	// is the answer to its next acked one. Here: no stream, empty, malformed.
	missing := publish(0, "missing", "a")
	missing.Acked = false
	k.publish(missing)
	empty := publish(0, "s")
	empty.Acked = false
	k.publish(empty)
	k.write(append(wire.AppendHeader(nil, wire.FlagPublish, 3), 0xff, 0xff, 0xff))
	k.publish(publish(1, "s", "b"))
	if d := cmp.Diff(wire.Ack{OK: true, RequestID: 1, HasOffset: true, Offset: 1}, k.ack()); d != "" {
		t.Errorf("ack (-want +got):\n%s", d)
	}
	if m := shardsOf(st)[0].Mark(); m != 2 {
		t.Errorf("%d records, want 2", m)
	}
}

// A publish-only stream is never answered, whatever is on it.
func TestPublishOnUnidirectionalStream(t *testing.T) {
	h := start(t, nil)
	st := h.memory("s", 1, nil)
	c := h.dial()
	s, err := c.conn.OpenUniStream()
	if err != nil {
		t.Fatal(err)
	}
	b := wire.AppendMessage(nil, &wire.Auth{TenantID: testTenant, Token: "good", ClientFlags: new(allFlags)})
	unacked := publish(0, "s", "a")
	unacked.Acked = false
	b = wire.AppendPublish(b, unacked)
	b = wire.AppendPublish(b, publish(1, "s", "b"))
	b = wire.AppendPublish(b, publish(2, "missing", "b"))
	b = wire.AppendMessage(b, &wire.PublishJSON{TenantID: testTenant, Namespace: "default", Stream: "s", Payload: []byte("c")})
	if _, err := s.Write(b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three records", func() bool { return shardsOf(st)[0].Mark() == 3 })
	// A request that would need an answer ends it.
	if _, err := s.Write(wire.AppendMessage(nil, &wire.Topology{})); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Context().Done():
	case <-time.After(testWait):
		t.Error("the stream goes on")
	}
	c.authed().alive()
}

func TestPublishRefusals(t *testing.T) {
	h := start(t, func(c *Config) { c.MaxRecordBytes, c.MaxBatchBytes = 2048, 4096 })
	h.memory("open-s", 1, nil)
	h.memory("closed-s", 1, nil)
	h.dir.refused[streamName("open-damaged")] = &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: "not_ready", Message: "the log of shard 0 is damaged",
	}
	other := publish(1, "open-s", "x")
	other.Tenant = []byte("t2")
	big := strings.Repeat("x", 2049)
	malformed := wire.AppendPublish(nil, publish(1, "open-s", "x"))
	binary.BigEndian.PutUint32(malformed[len(malformed)-5:], 1000) // the record's length
	badMode := wire.AppendPublish(nil, publish(1, "open-s", "x"))
	badMode[wire.HeaderLen+8] = 9
	for _, tt := range []struct {
		name   string
		send   []byte
		code   wire.Code
		retry  wire.Retry
		reason string
		text   string
	}{
		{"no such stream", wire.AppendPublish(nil, publish(1, "open-none", "x")), wire.CodeNotFound, wire.RetryAfter, "", "no stream"},
		{"not granted", wire.AppendPublish(nil, publish(1, "closed-s", "x")), wire.CodeForbidden, wire.RetryFatal, "", "forbidden"},
		{"other tenant", wire.AppendPublish(nil, other), wire.CodeForbidden, wire.RetryFatal, "", "forbidden"},
		{"unavailable", wire.AppendPublish(nil, publish(1, "open-damaged", "x")), wire.CodeShardUnavailable, wire.RetryNow, "not_ready", "damaged"},
		{"empty batch", wire.AppendPublish(nil, publish(1, "open-s")), wire.CodeInvalidRequest, wire.RetryFatal, "", "empty"},
		{"record too large", wire.AppendPublish(nil, publish(1, "open-s", "small", big, "small")), wire.CodeInvalidRequest, wire.RetryFatal, "", "record 1"}, // B49
		{"batch too large", wire.AppendPublish(nil, publish(1, "open-s", big[:2000], big[:2000], big[:2000])), wire.CodeInvalidRequest, wire.RetryFatal, "", "record 2"},
		{"malformed behind the id", malformed, wire.CodeInvalidRequest, wire.RetryFatal, "", ""},
		{"unknown ack mode", badMode, wire.CodeInvalidRequest, wire.RetryFatal, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := h.dial()
			k := c.authedAs("writer", allFlags, allFeatures)
			k.write(tt.send)
			a := k.ack()
			if a.OK || a.RequestID != 1 || !a.HasCode || a.Code != tt.code || a.Retry != tt.retry || a.Reason != tt.reason {
				t.Errorf("got %+v", a)
			}
			if !strings.Contains(a.Message, tt.text) {
				t.Errorf("message %q does not say %q", a.Message, tt.text)
			}
			// B39: a refusal fails nothing else.
			k.publish(publish(2, "open-s", "x"))
			if a := k.ack(); !a.OK || a.RequestID != 2 {
				t.Errorf("after the refusal: %+v", a)
			}
			// Without the flags offered the same refusal has a text only.
			k = c.authedAs("writer", wire.FlagPublish|wire.FlagPublishAcked|wire.FlagAck, 0)
			k.write(tt.send)
			if a := k.ack(); a.OK || a.RequestID != 1 || a.HasCode || a.HasDetail || a.Message == "" {
				t.Errorf("to an old client: %+v", a)
			}
		})
	}
}

// B49: the largest record that fits a frame passes; one that could not be delivered
// in every event shape is refused with its index.
func TestLargestRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 32 MiB")
	}
	h := start(t, nil)
	h.memory("s", 1, nil)
	k := h.dial().authed()
	largest := publish(1, "s", "")
	overhead := len(wire.AppendPublish(nil, largest)) - wire.HeaderLen
	k.publish(publish(1, "s", strings.Repeat("x", wire.MaxPayload-overhead)))
	if a := k.ack(); !a.OK {
		t.Errorf("largest: %+v", a)
	}
	// Without names there is room for one byte more than events can carry.
	over := publish(2, "s", strings.Repeat("x", wire.MaxRecord+1))
	over.Tenant, over.Namespace, over.Stream = nil, nil, nil
	k.publish(over)
	if a := k.ack(); a.OK || a.Code != wire.CodeInvalidRequest || !strings.Contains(a.Message, "record 0") {
		t.Errorf("over: %+v", a)
	}
}

// B53: counts from the wire drive no allocation; the broker goes on.
func TestCountsThatCannotBe(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	k := h.dial().authed()
	b := wire.AppendPublish(nil, publish(5, "s", "0123456789"))
	at := len(b) - 18
	binary.BigEndian.PutUint32(b[at:], 0xffff_ffff)
	k.write(b)
	if a := k.ack(); a.OK || a.RequestID != 5 || a.Code != wire.CodeInvalidRequest {
		t.Errorf("got %+v", a)
	}
	k.alive()
}

// B11, B38: a shard that cannot commit holds up what goes to it and nothing else on
// the connection; answers come as they are ready, each to its own request.
func TestStuckShardHoldsUpNobodyElse(t *testing.T) {
	h := start(t, func(c *Config) { c.PublishIngressWait = 100 * time.Millisecond })
	stuck := h.held("stuck")
	h.memory("healthy", 1, nil)
	c := h.dial()

	// B38 on one stream: the second is answered first.
	k := c.authed()
	k.publish(publish(1, "stuck", "x"))
	k.publish(publish(2, "healthy", "x"))
	if a := k.ack(); !a.OK || a.RequestID != 2 {
		t.Fatalf("first answer %+v, want that of 2", a)
	}

	// B11: the connection's share of the stuck shard fills up and is refused in time.
	full := c.authed()
	payload := strings.Repeat("x", 512<<10)
	for i := range 10 {
		full.publish(publish(uint64(100+i), "stuck", payload))
	}
	a := full.ack()
	if a.OK || a.Code != wire.CodeOverloaded || a.Retry != wire.RetryAfter || a.RetryAfterMS == 0 || a.Reason != "publish_queue_full" {
		t.Fatalf("got %+v", a)
	}
	for i := range 20 {
		k.publish(publish(uint64(200+i), "healthy", payload[:1000]))
		if a := k.ack(); !a.OK || a.RequestID != uint64(200+i) {
			t.Fatalf("healthy publish %d: %+v", i, a)
		}
	}
	stuck.release()
	if a := k.ack(); !a.OK || a.RequestID != 1 {
		t.Fatalf("released: %+v", a)
	}
	got := map[uint64]bool{a.RequestID: true}
	for range 9 {
		got[full.ack().RequestID] = true
	}
	if len(got) != 10 {
		t.Errorf("%d of 10 requests answered", len(got))
	}
}

// Unacked publishes without room are shed and counted, and the stream goes on.
func TestUnackedPublishesAreShed(t *testing.T) {
	h := start(t, func(c *Config) {
		c.PublishIngressWait = time.Millisecond
		c.ConnectionIngressBytes, c.ShardIngressBytes = 64<<10, 64<<10
	})
	stuck := h.held("stuck")
	k := h.dial().authed()
	for range 8 {
		p := publish(0, "stuck", strings.Repeat("x", 20<<10))
		p.Acked = false
		k.publish(p)
	}
	k.publish(publish(1, "stuck", strings.Repeat("x", 40<<10)))
	if a := k.ack(); a.OK || a.Code != wire.CodeOverloaded {
		t.Fatalf("got %+v", a)
	}
	if n := stuck.appended(); n == 0 || n >= 8 {
		t.Errorf("%d of 8 were taken", n)
	}
	stuck.release()
	eventually(t, "room", func() bool { return h.server.Stats().IngressBytes == 0 })
	k.publish(publish(2, "stuck", "x"))
	if a := k.ack(); !a.OK {
		t.Errorf("after the release: %+v", a)
	}
}

// A client that does not read its answers is not read any more, and gets all of
// them when it does read.
func TestUnreadAnswersStopReading(t *testing.T) {
	const limit, sent = 64, 4000
	h := start(t, func(c *Config) { c.MaxUnanswered = limit })
	h.memory("s", 1, nil)
	c := h.dial(func(c *quic.Config) { c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow = 1024, 1024 })
	k := c.authed()
	wrote := make(chan error, 1)
	go func() {
		for i := range sent {
			if _, err := k.s.Write(wire.AppendPublish(nil, publish(uint64(i), "s", strings.Repeat("x", 1000)))); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- k.s.Close()
	}()
	mark := func() uint64 {
		st, err := h.dir.Stream(streamName("s"))
		if err != nil {
			t.Error(err)
			return 0
		}
		return shardsOf(st)[0].Mark()
	}
	var last uint64
	eventually(t, "publishing stops", func() bool {
		now := mark()
		stopped := now > limit && now == last
		last = now
		if !stopped {
			time.Sleep(50 * time.Millisecond)
		}
		return stopped
	})
	if last == sent {
		t.Fatal("everything was taken without an answer being read")
	}
	seen := map[uint64]bool{}
	for range sent {
		seen[k.ack().RequestID] = true
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if len(seen) != sent {
		t.Errorf("%d of %d answered", len(seen), sent)
	}
	k.wantEnd()
}

func TestPublishJSONForms(t *testing.T) {
	h := start(t, nil)
	st := h.memory("s", 1, nil)
	c := h.dial()
	k := c.authed()
	one := wire.PublishJSON{TenantID: testTenant, Namespace: "default", Stream: "s", Payload: []byte("a")}
	k.send(&one) // no answer
	one.RequestID, one.Ack = new(uint64(1)), wire.AckPerMessage
	k.send(&one)
	k.want(&wire.PublishOK{RequestID: 1, Offset: new(uint64(1))})
	k.send(&wire.PublishBatchJSON{
		TenantID: testTenant, Namespace: "default", Stream: "s", Key: []byte("k"),
		Records: wire.RecordsOf([]byte("b"), []byte("c")), RequestID: new(uint64(2)), Ack: wire.AckPerBatch,
	})
	k.want(&wire.PublishOK{RequestID: 2, Offset: new(uint64(2))})
	one.RequestID, one.Stream = new(uint64(3)), "none"
	k.send(&one)
	m, ok := k.message().(*wire.PublishError)
	if !ok || m.RequestID != 3 || m.Code != "not_found" || m.Retry != "retry_after" {
		t.Errorf("got %+v", m)
	}
	// A batch of more than 64 KiB of JSON is counted while it is read.
	k.send(&wire.PublishBatchJSON{
		TenantID: testTenant, Namespace: "default", Stream: "s",
		Records: wire.RecordsOf(bytes.Repeat([]byte("x"), 300<<10)), RequestID: new(uint64(4)), Ack: wire.AckPerBatch,
	})
	k.want(&wire.PublishOK{RequestID: 4, Offset: new(uint64(4))})
	if m := shardsOf(st)[0].Mark(); m != 5 {
		t.Errorf("%d records", m)
	}

	old := c.authedAs("good", wire.BaseFlags, 0)
	old.send(&one)
	m, ok = old.message().(*wire.PublishError)
	if !ok || m.Code != "" || m.Detail != nil || m.Message == "" {
		t.Errorf("to an old client: %+v", m)
	}
	one.Stream, one.RequestID = "s", new(uint64(5))
	old.send(&one)
	old.want(&wire.PublishOK{RequestID: 5})
}

func TestIdempotentProducer(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	k := c.authed()
	k.send(&wire.ProducerInit{RequestID: 1})
	init, ok := k.message().(*wire.ProducerInitOK)
	if !ok || init.RequestID != 1 {
		t.Fatalf("got %+v", init)
	}
	batch := func(id, sequence uint64, payload string) *wire.Publish {
		p := publish(id, "s", payload)
		p.Idempotent, p.ProducerID, p.Sequence = true, init.ProducerID, sequence
		return p
	}
	k.publish(batch(2, 0, "a"))
	k.want(&wire.PublishOK{RequestID: 2, Offset: new(uint64(0))})
	k.publish(batch(3, 0, "a")) // sent again
	k.want(&wire.PublishOK{RequestID: 3, Offset: new(uint64(0))})
	refused := func(k *control, id uint64, reason wire.RefusedReason) {
		t.Helper()
		r, ok := k.message().(*wire.PublishRefused)
		if !ok || r.RequestID != id || r.Reason != reason || r.Message == "" {
			t.Errorf("got %+v, want %+v", r, reason)
		}
	}
	k.publish(batch(4, 5, "b"))
	refused(k, 4, wire.RefusedReason{Kind: wire.RefusedGap, Expected: 1})
	k.publish(batch(5, 0, "other"))
	refused(k, 5, wire.RefusedReason{Kind: wire.RefusedReused})
	stranger := batch(6, 3, "c")
	stranger.ProducerID++
	k.publish(stranger)
	refused(k, 6, wire.RefusedReason{Kind: wire.RefusedUnknown})
	k.send(&wire.PublishIdempotent{
		TenantID: testTenant, Namespace: "default", Stream: "s", Records: wire.RecordsOf([]byte("b")),
		RequestID: 7, ProducerID: init.ProducerID, Sequence: 1,
	})
	k.want(&wire.PublishOK{RequestID: 7, Offset: new(uint64(1))})
	// Whatever fails, the answer is JSON.
	missing := batch(8, 2, "x")
	missing.Stream = []byte("none")
	k.publish(missing)
	if e, ok := k.message().(*wire.PublishError); !ok || e.RequestID != 8 || e.Code != "not_found" {
		t.Errorf("got %+v", e)
	}
	// A client from before "sequence_reused" is told that it is written.
	old := c.authedAs("good", allFlags, allFeatures&^wire.FeatureSequenceReused)
	old.publish(batch(9, 0, "other"))
	old.want(&wire.PublishOK{RequestID: 9, Offset: new(uint64(0))})
}

// repeat reads the same bytes again and again.
type repeat struct {
	b  []byte
	at int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.b[r.at:])
	r.at = (r.at + n) % len(r.b)
	return n, nil
}

func (r *repeat) CancelRead(quic.StreamErrorCode) {}

type discardStream struct{ io.Writer }

func (discardStream) Close() error                     { return nil }
func (discardStream) CancelWrite(quic.StreamErrorCode) {}
func (discardStream) SetWriteDeadline(time.Time) error { return nil }

// The budget of the hot path: what the server does for an acked binary publish,
// from its header to its answer, without the shard.
func TestPublishAllocations(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 4, nil)
	c := h.dial()
	c.authed()
	eventually(t, "a connection", func() bool { return len(h.server.open()) == 1 })
	frame := publish(1, "s", strings.Repeat("x", 256))
	frame.Keyed, frame.Key = true, []byte("k")
	s := newSession(h.server.open()[0], &repeat{b: wire.AppendPublish(nil, frame)}, discardStream{io.Discard}, 0)
	s.principal, s.offer = h.auth.tokens["good"], wire.Offer{Flags: allFlags, Features: allFeatures}
	s.frames.SetLimit(wire.MaxPayload)
	one := func() {
		head, err := s.frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		p, shard, err := s.readPublish(head)
		if err != nil || shard == nil {
			t.Fatalf("shard %v, error %v", shard, err)
		}
		p.done(stream.Result{Offset: 1})
	}
	one() // fills the caches
	if n := testing.AllocsPerRun(2000, one); n > 2 {
		t.Errorf("%.1f allocations for a publish, want at most 2", n)
	}
}
