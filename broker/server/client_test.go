package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

// Everything that a client can offer.
const (
	allFlags    = wire.Flags(0x1FFF)
	allFeatures = wire.Features(0xFB77_FFFF)
)

// client is one QUIC connection that speaks frames.
type client struct {
	t    *testing.T
	conn *quic.Conn
}

func clientTLS(protos ...string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: protos}
}

func (h *harness) dial(change ...func(*quic.Config)) *client {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), testWait)
	defer cancel()
	cfg := &quic.Config{MaxIncomingUniStreams: 1024}
	for _, f := range change {
		f(cfg)
	}
	conn, err := quic.DialAddr(ctx, h.server.Addr().String(), clientTLS(), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return &client{t: h.t, conn: conn}
}

// control is a bidirectional stream.
type control struct {
	t      *testing.T
	s      *quic.Stream
	frames *frameio.Reader
}

func (c *client) open() *control {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testWait)
	defer cancel()
	s, err := c.conn.OpenStreamSync(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	k := &control{t: c.t, s: s, frames: frameio.NewReader(s, 0)}
	k.frames.SetLimit(wire.MaxPayload)
	return k
}

// authed opens a stream that has authenticated with everything offered.
func (c *client) authed() *control {
	c.t.Helper()
	return c.authedAs("good", allFlags, allFeatures)
}

func (c *client) authedAs(token string, flags wire.Flags, features wire.Features) *control {
	c.t.Helper()
	k := c.open()
	k.send(&wire.Auth{TenantID: testTenant, Token: token, ClientFlags: &flags, ClientFeatures: features})
	if m := k.message(); m.MessageType() != "auth_ok" {
		c.t.Fatalf("auth: got %s %+v", m.MessageType(), m)
	}
	return k
}

func (k *control) write(b []byte) {
	k.t.Helper()
	_ = k.s.SetWriteDeadline(time.Now().Add(testWait))
	if _, err := k.s.Write(b); err != nil {
		k.t.Fatalf("write: %v", err)
	}
}

func (k *control) send(m wire.Message) {
	k.t.Helper()
	k.write(wire.AppendMessage(nil, m))
}

func (k *control) fin() { _ = k.s.Close() }

// frame reads one frame.
func (k *control) frame() (wire.Header, []byte) {
	k.t.Helper()
	_ = k.s.SetReadDeadline(time.Now().Add(testWait))
	h, err := k.frames.Next()
	if err != nil {
		k.t.Fatalf("read frame: %v", err)
	}
	b, err := k.frames.Payload(h, nil)
	if err != nil {
		k.t.Fatalf("read payload: %v", err)
	}
	return h, b
}

func (k *control) message() wire.Message {
	k.t.Helper()
	h, b := k.frame()
	if h.Flags != 0 {
		k.t.Fatalf("got a frame with flags %#x, want a message", uint16(h.Flags))
	}
	m, err := wire.DecodeMessage(b)
	if err != nil {
		k.t.Fatal(err)
	}
	return m
}

func (k *control) ack() wire.Ack {
	k.t.Helper()
	h, b := k.frame()
	if h.Flags&wire.FlagAck == 0 {
		k.t.Fatalf("got a frame with flags %#x (%q), want an ack", uint16(h.Flags), b)
	}
	a, err := wire.DecodeAck(h.Flags, b)
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

// want reads a message and compares it.
func (k *control) want(want wire.Message) {
	k.t.Helper()
	if d := cmp.Diff(want, k.message()); d != "" {
		k.t.Fatalf("message (-want +got):\n%s", d)
	}
}

// wantError reads an error with that code, and whatever text.
func (k *control) wantError(code wire.Code) *wire.ErrorMsg {
	k.t.Helper()
	m := k.message()
	e, ok := m.(*wire.ErrorMsg)
	if !ok {
		k.t.Fatalf("got %s %+v, want error %s", m.MessageType(), m, code)
	}
	if e.Code != code.String() || e.Message == "" {
		k.t.Fatalf("got error %+v, want code %s", e, code)
	}
	return e
}

// wantEnd reads the FIN.
func (k *control) wantEnd() {
	k.t.Helper()
	_ = k.s.SetReadDeadline(time.Now().Add(testWait))
	h, err := k.frames.Next()
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		k.t.Fatalf("got header %+v, error %v, want the end of the stream", h, err)
	}
}

// alive says that the stream still serves.
func (k *control) alive() {
	k.t.Helper()
	k.send(&wire.StreamShards{TenantID: testTenant, Namespace: "default", Stream: "none", RequestID: 99})
	k.want(&wire.StreamShardsView{RequestID: 99})
}

// publish is an acked binary publish with defaults.
func publish(id uint64, name string, payloads ...string) *wire.Publish {
	var b []byte
	for _, p := range payloads {
		b = wire.AppendRecord(b, []byte(p))
	}
	return &wire.Publish{
		Acked: true, RequestID: id, AckMode: wire.AckPerBatch,
		Tenant: []byte(testTenant), Namespace: []byte("default"), Stream: []byte(name),
		Records: wire.Records{Count: uint32(len(payloads)), Bytes: b},
	}
}

func (k *control) publish(p *wire.Publish) {
	k.t.Helper()
	k.write(wire.AppendPublish(nil, p))
}

// events is a subscription's stream.
type events struct {
	t      *testing.T
	s      *quic.ReceiveStream
	frames *frameio.Reader
	id     uint64
}

// acceptEvents takes the next event stream and its hello.
func (c *client) acceptEvents() *events {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testWait)
	defer cancel()
	s, err := c.conn.AcceptUniStream(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	e := &events{t: c.t, s: s, frames: frameio.NewReader(s, 64<<10)}
	e.frames.SetLimit(wire.MaxPayload)
	h, b := e.frame()
	m, err := wire.DecodeMessage(b)
	hello, ok := m.(*wire.EventStreamHello)
	if h.Flags != 0 || err != nil || !ok {
		c.t.Fatalf("event stream begins with flags %#x %q, want a hello", uint16(h.Flags), b)
	}
	e.id = hello.SubscriptionID
	return e
}

func (e *events) frame() (wire.Header, []byte) {
	e.t.Helper()
	h, b, err := e.next()
	if err != nil {
		e.t.Fatalf("event stream: %v", err)
	}
	return h, b
}

func (e *events) next() (wire.Header, []byte, error) {
	_ = e.s.SetReadDeadline(time.Now().Add(testWait))
	h, err := e.frames.Next()
	if err != nil {
		return h, nil, err
	}
	b, err := e.frames.Payload(h, nil)
	return h, b, err
}

// received is one event.
type received struct {
	Offset  uint64
	Payload string
}

// read takes n events, and fails on anything else.
func (e *events) read(n int) (out []received) {
	e.t.Helper()
	for len(out) < n {
		h, b := e.frame()
		ev, err := wire.DecodeEvents(h.Flags, b)
		if err != nil {
			e.t.Fatalf("flags %#x, payload %q: %v", uint16(h.Flags), b, err)
		}
		for i, x := range ev.Each() {
			out = append(out, received{ev.Base + uint64(i), string(x.Payload)})
		}
	}
	return out
}

// resetCode reads to the end of the stream, which must be a reset.
func (e *events) resetCode() quic.StreamErrorCode {
	e.t.Helper()
	for {
		_, _, err := e.next()
		if reset, ok := errors.AsType[*quic.StreamError](err); ok {
			return reset.ErrorCode
		}
		if err != nil {
			e.t.Fatalf("event stream ended with %v, want a reset", err)
		}
	}
}

// subscribe sends a subscribe on a stream of its own, as clients do, and gives the
// answer.
func (c *client) subscribe(m *wire.Subscribe) wire.Message {
	c.t.Helper()
	k := c.authed()
	m.TenantID, m.Namespace = testTenant, "default"
	k.send(m)
	k.fin()
	answer := k.message()
	k.wantEnd()
	return answer
}

// mustSubscribe gives the answer and the event stream.
func (c *client) mustSubscribe(m *wire.Subscribe) (*wire.Subscribed, *events) {
	c.t.Helper()
	answer := c.subscribe(m)
	ok, is := answer.(*wire.Subscribed)
	if !is {
		c.t.Fatalf("subscribe: got %s %+v", answer.MessageType(), answer)
	}
	e := c.acceptEvents()
	if e.id != ok.SubscriptionID {
		c.t.Fatalf("hello names subscription %d, the answer %d", e.id, ok.SubscriptionID)
	}
	return ok, e
}

// closeCode waits for the server to close the connection.
func (c *client) closeCode() quic.ApplicationErrorCode {
	c.t.Helper()
	select {
	case <-c.conn.Context().Done():
	case <-time.After(testWait):
		c.t.Fatal("the connection was not closed")
	}
	app, ok := errors.AsType[*quic.ApplicationError](context.Cause(c.conn.Context()))
	if !ok || !app.Remote {
		c.t.Fatalf("connection ended with %v, want a close by the server", context.Cause(c.conn.Context()))
	}
	return app.ErrorCode
}
