package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

const (
	// patience is how long what must happen may take, a while how long something must
	// not happen.
	patience = 20 * time.Second
	aWhile   = 50 * time.Millisecond
)

// host is a node that has every connection that comes in.
type host struct {
	t  *testing.T
	n  *Node
	l  net.Listener
	in chan net.Conn
}

func newHost(t *testing.T, n *Node) *host {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, n: n, l: l, in: make(chan net.Conn, 16)}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.in <- c
		}
	})
	t.Cleanup(func() {
		l.Close()
		accepting.Wait()
	})
	n.SetAddr(l.Addr().String())
	return h
}

// dial connects to another host; both ends are closed with the test.
func (h *host) dial(to *host) (near, far net.Conn) {
	h.t.Helper()
	near, err := h.try(to, patience)
	if err != nil {
		h.t.Fatal(err)
	}
	far = <-to.in
	h.t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near, far
}

func (h *host) try(to *host, within time.Duration) (net.Conn, error) {
	addr, ok := h.n.Resolve(to.n.name)
	if !ok {
		h.t.Fatal("no address")
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), within)
	defer cancel()
	return h.n.Dial(ctx, addr)
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Errorf("send %q: %v", text, err)
	}
}

func wantText(t *testing.T, c net.Conn, want string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func wantNothing(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(aWhile)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %d bytes, %v, want nothing at all", n, err)
	}
}

func wantClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection is still open")
	}
}

func three(t *testing.T) (nw *Network, a, b, c *host) {
	t.Helper()
	nw = New(t, 0)
	return nw, newHost(t, nw.Node("a")), newHost(t, nw.Node("b")), newHost(t, nw.Node("c"))
}

func TestPass(t *testing.T) {
	_, a, b, _ := three(t)
	near, far := a.dial(b)
	send(t, near, "ping")
	wantText(t, far, "ping")
	send(t, far, "pong")
	wantText(t, near, "pong")

	send(t, near, "last words")
	near.Close()
	wantText(t, far, "last words")
	wantClosed(t, far)

	// Much, and somebody who stops reading for a while.
	near, far = a.dial(b)
	const size = 8 << 20
	var sending sync.WaitGroup
	sending.Go(func() { send(t, near, string(make([]byte, size))); near.Close() })
	if n, err := io.Copy(io.Discard, far); n != size || err != nil {
		t.Errorf("%d of %d bytes came, %v", n, size, err)
	}
	sending.Wait()
}

func TestSeedOfTheEnvironment(t *testing.T) {
	t.Setenv("FELIX_SEED", "77")
	if n := New(t, 0); n.seed != 77 {
		t.Errorf("seed %d", n.seed)
	}
	if n := New(t, 5); n.seed != 5 {
		t.Errorf("seed %d", n.seed)
	}
}

// TestEnd: a network that ends closes what is open, and what is cut.
func TestEnd(t *testing.T) {
	var near, far net.Conn
	var n *Node
	t.Run("network", func(t *testing.T) {
		nw := New(t, 0)
		a, b := newHost(t, nw.Node("a")), newHost(t, nw.Node("b"))
		var err error
		if near, err = a.try(b, patience); err != nil {
			t.Fatal(err)
		}
		far = <-b.in
		nw.Cut("a", "b")
		send(t, near, "never arrives")
		n = a.n
	})
	wantClosed(t, near)
	wantClosed(t, far)
	near.Close()
	far.Close()
	if _, err := n.Dial(t.Context(), "127.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
