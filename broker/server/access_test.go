package server

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// foreign makes the stream "s" of another tenant and a principal there, who may do
// everything anywhere.
func foreign(h *harness) {
	h.t.Helper()
	shard, err := stream.Open(stream.Config{Name: stream.Name{Tenant: "t2", Namespace: "default", Stream: "s"}}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	name := stream.Name{Tenant: "t2", Namespace: "default", Stream: "s"}
	h.dir.mu.Lock()
	h.dir.streams[name] = stream.NewStream(name, "1", stream.Memory, wire.RoutingModulo, []stream.Place{shard})
	h.dir.mu.Unlock()
	h.auth.tokens["any"] = auth.NewPrincipal("mallory", testTenant, []string{
		"stream.publish:*", "stream.subscribe:*", "stream.manage:*", "stream.publish:stream:t2/*", "stream.subscribe:stream:t2/*",
	})
}

// Whatever a token grants, it grants in its own tenant: no request of any form reaches
// a stream of another, or tells whether it is there.
func TestNoRequestReachesAnotherTenant(t *testing.T) {
	h := start(t, nil)
	foreign(h)
	k := h.dial().authedAs("any", allFlags, allFeatures)
	other := func(p *wire.Publish) *wire.Publish {
		p.Tenant = []byte("t2")
		return p
	}
	texts := make(map[string][]string)
	for _, name := range []string{"s", "none"} {
		idempotent := other(publish(3, name, "x"))
		idempotent.Idempotent = true
		k.publish(other(publish(1, name, "x")))
		if a := k.ack(); a.OK || a.RequestID != 1 || a.Code != wire.CodeForbidden {
			t.Errorf("publish: %+v", a)
		}
		k.publish(idempotent)
		k.wantPublishError(3, wire.CodeForbidden)
		k.send(&wire.PublishJSON{TenantID: "t2", Namespace: "default", Stream: name, Payload: []byte("x"), RequestID: new(uint64(4)), Ack: wire.AckPerMessage})
		k.wantPublishError(4, wire.CodeForbidden)
		k.send(&wire.PublishBatchJSON{TenantID: "t2", Namespace: "default", Stream: name, Records: wire.RecordsOf([]byte("x")), RequestID: new(uint64(5)), Ack: wire.AckPerBatch})
		k.wantPublishError(5, wire.CodeForbidden)
		k.send(&wire.PublishIdempotent{TenantID: "t2", Namespace: "default", Stream: name, Records: wire.RecordsOf([]byte("x")), RequestID: 6})
		k.wantPublishError(6, wire.CodeForbidden)
		for _, m := range []wire.Message{
			&wire.Subscribe{TenantID: "t2", Namespace: "default", Stream: name},
			&wire.StreamShards{TenantID: "t2", Namespace: "default", Stream: name},
			&wire.ShardOwners{TenantID: "t2", Namespace: "default", Name: name, Kind: wire.OwnersOfStream},
		} {
			k.send(m)
			texts[name] = append(texts[name], k.wantError(wire.CodeForbidden).Message)
		}
	}
	if d := cmp.Diff(texts["none"], texts["s"]); d != "" {
		t.Errorf("the answers tell whether the stream is there (-none +s):\n%s", d)
	}
	st, err := h.dir.Stream(stream.Name{Tenant: "t2", Namespace: "default", Stream: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if got := shardsOf(st)[0].Mark(); got != 0 {
		t.Errorf("%d records were written", got)
	}
}

func (k *control) wantPublishError(id uint64, code wire.Code) {
	k.t.Helper()
	e, ok := k.message().(*wire.PublishError)
	if !ok || e.RequestID != id || e.Code != code.String() {
		k.t.Fatalf("got %+v, want publish_error %s for %d", e, code, id)
	}
}

// Names that are no names find nothing: neither a stream that a part of them names,
// nor a file.
func TestNamesThatAreNone(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	k := h.dial().authed()
	for _, name := range []string{
		"", ".", "..", "../default/s", "s/", "/s", "default/s", "s\x00", "s ", "S", "*", "s*", "%73", "..%2fs", "s\n", "\u202es", "ｓ", strings.Repeat("s", 1<<16-1),
	} {
		k.publish(publish(1, name, "x"))
		if a := k.ack(); a.OK || a.Code != wire.CodeNotFound {
			t.Errorf("publish to %q: %+v", name[:min(20, len(name))], a)
		}
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: name})
		k.wantError(wire.CodeNotFound)
	}
	// Half a name in each part is not the name of the whole.
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "", Stream: "default/s"})
	k.wantError(wire.CodeNotFound)
}

// A name that is not UTF-8 is refused with the publish that has it; in JSON it ends
// the stream, as the frame is not JSON.
func TestNamesThatAreNotText(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	k := c.authed()
	p := publish(1, "s", "x")
	p.Namespace = []byte("def\xffault")
	k.publish(p)
	if a := k.ack(); a.OK || a.RequestID != 1 || a.Code != wire.CodeInvalidRequest {
		t.Errorf("got %+v", a)
	}
	payload := []byte(`{"type":"stream_shards","tenant_id":"t1","namespace":"default","stream":"` + "\xff" + `","request_id":1}`)
	k.write(append(wire.AppendHeader(nil, 0, len(payload)), payload...))
	k.wantError(wire.CodeInvalidRequest)
	k.wantEnd()
}

// JSON made to cost a parser more than it costs its sender.
func TestHostileJSON(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	for name, payload := range map[string]string{
		"deep":            `{"type":"topology","x":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`,
		"deep and open":   `{"type":"topology","x":` + strings.Repeat("{\"a\":", 10_000),
		"array":           `[{"type":"topology"}]`,
		"number for type": `{"type":1}`,
		"two objects":     `{"type":"topology"}{"type":"topology"}`,
		"no type":         `{}`,
		"empty":           ``,
		"null":            `null`,
	} {
		k := c.authed()
		k.write(append(wire.AppendHeader(nil, 0, len(payload)), payload...))
		if e := k.wantError(wire.CodeInvalidRequest); len(e.Message) > 400 {
			t.Errorf("%s: %d bytes of text", name, len(e.Message))
		}
		k.wantEnd()
	}
	// The last of two keys counts, for the check and for the use alike.
	k := c.authed()
	payload := `{"type":"stream_shards","tenant_id":"t1","tenant_id":"t2","namespace":"default","stream":"s","request_id":1}`
	k.write(append(wire.AppendHeader(nil, 0, len(payload)), payload...))
	k.wantError(wire.CodeForbidden)
	// Many keys that mean nothing.
	payload = `{"type":"topology"` + strings.Repeat(`,"a":0`, 10_000) + `}`
	k.write(append(wire.AppendHeader(nil, 0, len(payload)), payload...))
	if d := cmp.Diff("topology_view", k.message().MessageType()); d != "" {
		t.Error(d)
	}
}

// What a client sends before its handshake is complete could be replayed by anybody,
// publishes among it: it is not taken, although sessions are resumed.
func TestNoEarlyData(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	conf := clientTLS()
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for i, resumed := range []bool{false, true} {
		conn, err := quic.DialAddrEarly(t.Context(), h.server.Addr().String(), conf, &quic.Config{Allow0RTT: true})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, conn: conn}
		k := c.authed() // its ticket came before the answer
		k.publish(publish(1, "s", "x"))
		if a := k.ack(); !a.OK || a.Offset != uint64(i) {
			t.Errorf("got %+v", a)
		}
		if st := conn.ConnectionState(); st.Used0RTT || st.TLS.DidResume != resumed {
			t.Errorf("connection %d: early data %v, resumed %v", i, st.Used0RTT, st.TLS.DidResume)
		}
		_ = conn.CloseWithError(0, "")
	}
}

// A batch of a million records that are empty is a batch like any other.
func TestBatchOfNothingButRecords(t *testing.T) {
	const count = 1 << 20
	h := start(t, nil)
	st := h.memory("s", 1, nil)
	k := h.dial().authed()
	p := publish(1, "s")
	p.Records = wire.Records{Count: count, Bytes: make([]byte, 4*count)}
	k.publish(p)
	if a := k.ack(); !a.OK || a.Offset != 0 {
		t.Errorf("got %+v", a)
	}
	k.publish(publish(2, "s", "x"))
	if a := k.ack(); !a.OK || a.Offset != count {
		t.Errorf("got %+v", a)
	}
	if got := shardsOf(st)[0].Mark(); got != count+1 {
		t.Errorf("the mark is %d", got)
	}
}
