package admin

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// dialFrom connects from a loopback address and sends nothing.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Who opens connections and sends nothing does not keep a probe from its answer.
func TestIdleConnectionsDoNotStarveProbes(t *testing.T) {
	h := newHouse(t)
	cfg := h.cfg
	cfg.MaxConnections, cfg.ShutdownTimeout = 16, 4*time.Second
	ln := listen(t)
	stop, done := serve(t, cfg, ln)
	addr := ln.Addr().String()
	const stranger = "127.0.0.2"
	for range 40 {
		dialFrom(t, stranger, addr)
	}
	begun := time.Now()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 8 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if took := time.Since(begun); took > readHeaderTimeout-time.Second {
		t.Errorf("8 probes took %s", took)
	}
	// One connection more of the stranger is closed unheard.
	c := dialFrom(t, stranger, addr)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) || isTimeout(err) {
		t.Errorf("got %v, want the end of the connection", err)
	}
	// Nor do they hold the end up.
	begun = time.Now()
	stop()
	if err := wait(t, done); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > cfg.ShutdownTimeout/2 {
		t.Errorf("the end took %s", took)
	}
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

func TestAddressLimitGivesPlacesBack(t *testing.T) {
	ln := limitAddresses(listen(t), 1)
	defer ln.Close()
	for range 3 {
		client := dialFrom(t, "127.0.0.1", ln.Addr().String())
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if n := ln.open[remoteAddr(c)]; n != 1 {
			t.Errorf("%d open", n)
		}
		_ = c.Close()
		_ = c.Close() // as net/http may
		if _, err := io.ReadAll(client); err != nil {
			t.Error(err)
		}
	}
	if len(ln.open) != 0 {
		t.Errorf("left: %v", ln.open)
	}
}
