package server

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/wire"
)

func TestAuthAnswers(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	noCodes := allFeatures &^ wire.FeatureErrorCodes
	for _, tt := range []struct {
		name  string
		auth  wire.Auth
		want  wire.Message
		final bool
	}{
		{
			"recent client",
			wire.Auth{TenantID: testTenant, Token: "good", ClientFlags: new(allFlags), ClientFeatures: allFeatures, ClientFeaturesHi: 1},
			&wire.AuthOK{ServerFlags: 0x1F7F, ServerFeatures: 0x0024_7A23}, false,
		},
		{"client without an offer", wire.Auth{TenantID: testTenant, Token: "good"}, &wire.OK{}, false},
		{
			"bad token",
			wire.Auth{TenantID: testTenant, Token: "bad", ClientFlags: new(allFlags), ClientFeatures: allFeatures},
			&wire.ErrorMsg{Message: "auth failed", Code: "unauthenticated", Retry: "fatal"}, true,
		},
		{
			"bad token, no codes offered",
			wire.Auth{TenantID: testTenant, Token: "bad", ClientFlags: new(allFlags), ClientFeatures: noCodes},
			&wire.ErrorMsg{Message: "auth failed"}, true,
		},
		{
			"other tenant",
			wire.Auth{TenantID: "t2", Token: "good", ClientFlags: new(allFlags), ClientFeatures: allFeatures},
			&wire.ErrorMsg{Message: "auth failed", Code: "unauthenticated", Retry: "fatal"}, true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := c.open()
			k.send(&tt.auth)
			k.want(tt.want)
			if tt.final {
				k.wantEnd()
			}
		})
	}
}

// 40 streams that only authenticate are what a client opens when it connects; they
// stay idle for its life.
func TestIdleAuthenticatedStreams(t *testing.T) {
	h := start(t, func(c *Config) { c.AuthTimeout = 200 * time.Millisecond })
	c := h.dial()
	streams := make([]*control, 0, 40)
	for range 40 {
		streams = append(streams, c.authed())
	}
	select {
	case <-c.conn.Context().Done():
		t.Fatal("the connection was closed")
	case <-time.After(400 * time.Millisecond): // past the deadline of those that do not authenticate
	}
	for _, k := range streams {
		k.alive()
	}
	if n := h.server.Stats().Streams; n != 40 {
		t.Errorf("%d streams open, want 40", n)
	}
}

func TestProtocolErrorsEndTheStream(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	c.authed() // so that bad streams are not the connection's first
	record := wire.RecordsOf([]byte("x"))
	badEvent := wire.AppendEvents(nil, &wire.Events{Records: record})
	for _, tt := range []struct {
		name   string
		authed bool
		send   []byte
		code   wire.Code
	}{
		{"request before auth", false, wire.AppendMessage(nil, &wire.Topology{}), wire.CodeUnauthenticated},
		{"publish before auth", false, wire.AppendPublish(nil, publish(1, "s", "x")), wire.CodeUnauthenticated},
		{"large frame before auth", false, wire.AppendHeader(nil, 0, wire.PreauthMaxPayload+1), wire.CodeInvalidRequest},
		{"not JSON", true, append(wire.AppendHeader(nil, 0, 3), "{x}"...), wire.CodeInvalidRequest},
		{"second auth", true, wire.AppendMessage(nil, &wire.Auth{TenantID: testTenant, Token: "good"}), wire.CodeInvalidRequest},
		{"broker's message", true, wire.AppendMessage(nil, &wire.Subscribed{}), wire.CodeInvalidRequest},
		{"event frame", true, badEvent, wire.CodeInvalidRequest},
		{"ack frame", true, wire.AppendAck(nil, &wire.Ack{OK: true}), wire.CodeInvalidRequest},
		{"frame above the limit", true, wire.AppendHeader(nil, wire.FlagPublish, wire.MaxPayload+1), wire.CodeInvalidRequest},
		{"acked publish without an id", true, append(wire.AppendHeader(nil, wire.FlagPublish|wire.FlagPublishAcked, 4), 1, 2, 3, 4), wire.CodeInvalidRequest},
		{"acked JSON publish without an id", true, wire.AppendMessage(nil, &wire.PublishJSON{TenantID: testTenant, Namespace: "default", Stream: "s", Ack: wire.AckPerMessage}), wire.CodeInvalidRequest},
		{"publish and ack at once", true, wire.AppendHeader(nil, wire.FlagPublish|wire.FlagAck, 0), wire.CodeInvalidRequest},
		{"idempotent without acked", true, wire.AppendHeader(nil, wire.FlagPublish|wire.FlagPublishIdempotent, 0), wire.CodeInvalidRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var k *control
			want := tt.code.String()
			if tt.authed {
				k = c.authed()
			} else {
				k, want = c.open(), "" // nothing was offered yet
			}
			k.t = t
			k.write(tt.send)
			e, ok := k.message().(*wire.ErrorMsg)
			if !ok || e.Code != want || e.Message == "" {
				t.Fatalf("got %+v, want code %q", e, want)
			}
			k.wantEnd()
		})
	}
	c.authed().alive()
}

// B54: each reserved or foreign bit, once on each kind of frame: a typed refusal and
// the end of the stream, never a panic and never masked off.
func TestUnknownFlags(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	kinds := map[string][]byte{
		"message":       wire.AppendMessage(nil, &wire.Topology{}),
		"publish":       wire.AppendPublish(nil, &wire.Publish{Tenant: []byte(testTenant), Namespace: []byte("default"), Stream: []byte("s"), Records: wire.RecordsOf([]byte("x"))}),
		"acked publish": wire.AppendPublish(nil, publish(1, "s", "x")),
		"events":        wire.AppendEvents(nil, &wire.Events{Records: wire.RecordsOf([]byte("x"))}),
		"ack":           wire.AppendAck(nil, &wire.Ack{OK: true}),
	}
	for name, frame := range kinds {
		for bit := wire.Flags(1); bit != 0; bit <<= 1 {
			flags := wire.Flags(binary.BigEndian.Uint16(frame[6:]))
			changed := flags | bit
			if kind, err := changed.Kind(); err == nil && kind <= wire.KindPublish {
				continue // a frame that clients do send
			}
			k := c.authed()
			b := append([]byte(nil), frame...)
			binary.BigEndian.PutUint16(b[6:], uint16(changed))
			k.write(b)
			k.wantError(wire.CodeInvalidRequest)
			k.wantEnd()
			if t.Failed() {
				t.Fatalf("%s with bit %#x", name, uint16(bit))
			}
		}
	}
	if st, err := h.dir.Stream(streamName("s")); err != nil || shardsOf(st)[0].Mark() != 0 {
		t.Errorf("something was written: %v", err)
	}
}

func TestAnotherProtocol(t *testing.T) {
	h := start(t, nil)
	t.Run("first stream", func(t *testing.T) {
		c := h.dial()
		k := c.open()
		k.write([]byte("GET / HTTP/1.1\r\n\r\n"))
		if code := c.closeCode(); code != closeNotFelix {
			t.Errorf("close code %d", code)
		}
	})
	t.Run("later stream", func(t *testing.T) {
		c := h.dial()
		first := c.authed()
		k := c.open()
		k.write([]byte("GET / HTTP/1.1\r\n\r\n"))
		k.wantEnd()
		first.alive()
	})
	t.Run("another version", func(t *testing.T) {
		c := h.dial()
		b := wire.AppendMessage(nil, &wire.Topology{})
		b[5] = 2
		c.open().write(b)
		if code := c.closeCode(); code != closeNotFelix {
			t.Errorf("close code %d", code)
		}
	})
}

func TestAuthDeadline(t *testing.T) {
	const soon = 150 * time.Millisecond
	for _, tt := range []struct {
		name string
		do   func(c *client)
		live bool
	}{
		{"nothing opened", func(*client) {}, false},
		{"half an auth", func(c *client) { c.open().write(wire.AppendHeader(nil, 0, 100)) }, false},
		{"a check that hangs", func(c *client) { c.open().send(&wire.Auth{TenantID: testTenant, Token: "hang"}) }, false},
		{"an announcement", func(c *client) {
			// A bare auth on a unidirectional stream authenticates the connection.
			s, err := c.conn.OpenUniStream()
			if err != nil {
				c.t.Fatal(err)
			}
			if _, err := s.Write(wire.AppendMessage(nil, &wire.Auth{TenantID: testTenant, Token: "good"})); err != nil {
				c.t.Fatal(err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, func(c *Config) { c.AuthTimeout = soon })
			c := h.dial()
			tt.do(c)
			if !tt.live {
				if code := c.closeCode(); code != closeAuthTimeout {
					t.Errorf("close code %d", code)
				}
				return
			}
			select {
			case <-c.conn.Context().Done():
				t.Error("the connection was closed")
			case <-time.After(3 * soon):
			}
		})
	}
}

// B52: 2048 streams that each announce 16 MiB before they authenticate cost
// kilobytes, and the connection is closed.
func TestAnnouncedBytesBeforeAuth(t *testing.T) {
	h := start(t, func(c *Config) { c.AuthTimeout = 2 * time.Second })
	c := h.dial()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	header := wire.AppendHeader(nil, 0, wire.MaxPayload)
	for range 2048 {
		s, err := c.conn.OpenStream()
		if _, full := errors.AsType[quic.StreamLimitReachedError](err); full {
			break // the server is slower than this loop; what it has is enough
		}
		if err == nil {
			_, err = s.Write(header)
		}
		if err != nil {
			break // closed: these are too many before it authenticates
		}
	}
	if code := c.closeCode(); code != closeUnauthenticated {
		t.Errorf("close code %d", code)
	}
	eventually(t, "sessions are gone", func() bool { return h.server.Stats().Streams == 0 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 64<<20 {
		t.Errorf("%d bytes were allocated for 2048 announcements", grown)
	}
}

// At most 16 streams are read before one of them has authenticated.
func TestStreamsReadBeforeAuth(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	header := wire.AppendHeader(nil, 0, 10)
	for range 100 {
		c.open().write(header)
	}
	eventually(t, "16 sessions", func() bool { return h.server.Stats().Streams == 16 })
	// The 17th waits for a place, and gets it when one of them ends.
	blocked := c.open()
	blocked.send(&wire.Auth{TenantID: testTenant, Token: "good"})
	if n := h.server.Stats().Streams; n != 16 {
		t.Errorf("%d sessions", n)
	}
}

func TestRefusedTokenLeavesNothing(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	for range 64 {
		k := c.open()
		k.send(&wire.Auth{TenantID: testTenant, Token: "bad"})
		k.want(&wire.ErrorMsg{Message: "auth failed"})
		k.wantEnd()
		k.fin()
	}
	eventually(t, "no sessions", func() bool { return h.server.Stats().Streams == 0 })
}

func TestUndecidedTokenMayBeTriedAgain(t *testing.T) {
	h := start(t, func(c *Config) {
		c.Auth = authFunc(func(context.Context, string, string) (*auth.Principal, error) {
			return nil, errors.New("no answer from the token service")
		})
	})
	k := h.dial().open()
	k.send(&wire.Auth{TenantID: testTenant, Token: "good", ClientFlags: new(allFlags), ClientFeatures: allFeatures})
	e := k.wantError(wire.CodeInternal)
	if d := cmp.Diff(wire.RetryNow.String(), e.Retry); d != "" {
		t.Error(d)
	}
}

type authFunc func(context.Context, string, string) (*auth.Principal, error)

func (f authFunc) Verify(ctx context.Context, tenant, token string) (*auth.Principal, error) {
	return f(ctx, tenant, token)
}
