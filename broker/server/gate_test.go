package server

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/metrics"
)

func TestGate(t *testing.T) {
	m, err := metrics.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(3, 2, m.Sessions.Rejected)
	from := func(ip string) (context.CancelFunc, context.Context, error) {
		ctx, cancel := context.WithCancel(t.Context())
		out, err := g.connContext(ctx, &quic.ClientInfo{RemoteAddr: &net.UDPAddr{IP: net.ParseIP(ip), Port: 1}})
		return cancel, out, err
	}
	leaveA, ctxA, err := from("10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := from("::ffff:10.0.0.1"); err != nil { // the same address
		t.Fatal(err)
	}
	if _, _, err := from("10.0.0.1"); !errors.Is(err, errAddress) {
		t.Errorf("third of an address: %v", err)
	}
	if _, _, err := from("2001:db8::1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := from("10.0.0.2"); !errors.Is(err, errConnections) {
		t.Errorf("fourth of all: %v", err)
	}
	g.completed(ctxA)
	g.completed(ctxA)
	if n := g.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	leaveA()
	eventually(t, "a place is free", func() bool {
		_, _, err := from("2001:db8::2") // the same /64
		return err == nil
	})
	if _, _, err := from("2001:db8::3"); err == nil {
		t.Error("third of a /64 passed")
	}
	g.completed(ctxA) // too late
	if n := g.connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
	if g.verifyAddress(nil) {
		t.Error("addresses are doubted already")
	}
}

// Connections over the cap are refused during the handshake.
func TestConnectionCap(t *testing.T) {
	h := start(t, func(c *Config) { c.MaxConnections = 2 }) // one for each address
	first := h.dial()
	first.authed()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	_, err := quic.DialAddr(ctx, h.server.Addr().String(), clientTLS(), nil)
	refused, ok := errors.AsType[*quic.TransportError](err)
	if !ok || refused.ErrorCode != quic.ConnectionRefused {
		t.Fatalf("got %v, want CONNECTION_REFUSED", err)
	}
	_ = first.conn.CloseWithError(0, "")
	eventually(t, "another one fits", func() bool {
		conn, err := quic.DialAddr(ctx, h.server.Addr().String(), clientTLS(), nil)
		if err == nil {
			_ = conn.CloseWithError(0, "")
		}
		return err == nil
	})
}

// B65: handshakes that never authenticate and connections that vanish leave neither
// goroutines nor places behind, once their timeouts have passed.
func TestConnectionsThatVanish(t *testing.T) {
	n := 100
	if testing.Short() {
		n = 30
	}
	h := start(t, func(c *Config) { c.AuthTimeout, c.IdleTimeout = 500*time.Millisecond, 500*time.Millisecond })
	before := runtime.NumGoroutine()
	for _, authenticate := range []bool{false, true} {
		for range n / 10 {
			// Ten connections on a socket that is closed without a word.
			socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			tr := &quic.Transport{Conn: socket}
			for range 10 {
				conn, err := tr.Dial(t.Context(), h.server.Addr(), clientTLS(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if authenticate {
					(&client{t: t, conn: conn}).authed()
				}
			}
			_ = tr.Close()
			_ = socket.Close()
		}
		eventually(t, "no connection is left", func() bool {
			h.server.gate.mu.Lock()
			defer h.server.gate.mu.Unlock()
			return h.server.gate.total == 0 && len(h.server.gate.byAddr) == 0
		})
		eventually(t, "goroutines are back", func() bool { return runtime.NumGoroutine() <= before+5 })
	}
	if s := h.server.Stats(); s != (Stats{}) {
		t.Errorf("left: %+v", s)
	}
	eventually(t, "no windows are granted", func() bool {
		h.server.windows.mu.Lock()
		defer h.server.windows.mu.Unlock()
		return len(h.server.windows.byConn) == 0
	})
}
