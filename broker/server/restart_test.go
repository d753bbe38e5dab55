package server

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// B63: a broker that is killed says nothing. One that comes back with its key tells
// clients of before at once; without it they would wait for their idle timeout.
func TestRestartIsNoticedAtOnce(t *testing.T) {
	key := &quic.StatelessResetKey{1, 2, 3}
	killed := start(t, func(c *Config) { c.StatelessResetKey = key })
	c := killed.dial(func(c *quic.Config) { c.MaxIdleTimeout = 5 * time.Minute })
	k := c.authed()
	addr := killed.server.Addr().String()
	killed.server.socket.close() // no CONNECTION_CLOSE
	select {
	case <-killed.server.Failed():
	case <-time.After(testWait):
		t.Fatal("a server without its socket does not say that it failed")
	}
	if err := killed.server.Err(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("failed with %v", err)
	}

	start(t, func(c *Config) { c.StatelessResetKey, c.Addr = key, addr })
	begin := time.Now()
	_, _ = k.s.Write(wire.AppendMessage(nil, &wire.Topology{}))
	select {
	case <-c.conn.Context().Done():
	case <-time.After(testWait):
		t.Fatal("the client still believes in its connection")
	}
	if _, ok := errors.AsType[*quic.StatelessResetError](context.Cause(c.conn.Context())); !ok {
		t.Errorf("connection ended with %v after %s", context.Cause(c.conn.Context()), time.Since(begin))
	}
}

// B63: keep-alives come well before either side takes silence for death.
func TestKeepAlive(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Second, time.Minute} {
		cfg := Config{IdleTimeout: idle}
		cfg.setDefaults()
		q := quicConfig(&cfg, newWindows(0))
		if q.KeepAlivePeriod <= 0 || q.KeepAlivePeriod > q.MaxIdleTimeout/2 {
			t.Errorf("keep-alive every %s, idle timeout %s", q.KeepAlivePeriod, q.MaxIdleTimeout)
		}
	}
}
