package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
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

// TestCuts: who hears whom, on connections that exist, whoever dialed them; and afterwards all of it comes.
func TestCuts(t *testing.T) {
	for _, c := range []struct {
		name       string
		cut, heal  func(nw *Network)
		there, bak bool // heard from a to b, and back
		other      bool // from a to c
	}{
		{"cut", func(nw *Network) { nw.Cut("b", "a") }, func(nw *Network) { nw.Heal("a", "b") }, false, false, true},
		{"one way", func(nw *Network) { nw.CutOneWay("a", "b") }, func(nw *Network) { nw.Heal("b", "a") }, false, true, true},
		{"the other way", func(nw *Network) { nw.CutOneWay("b", "a") }, func(nw *Network) { nw.HealAll() }, true, false, true},
		{"isolated", func(nw *Network) { nw.Isolate("a") }, func(nw *Network) { nw.Rejoin("a") }, false, false, false},
		{"partition", func(nw *Network) { nw.Partition([]string{"a", "c"}, []string{"b"}) }, func(nw *Network) { nw.HealAll() }, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			nw, a, b, other := three(t)
			ab, ba := a.dial(b)
			ba2, ab2 := b.dial(a) // the same, dialed from the other side
			ac, ca := a.dial(other)
			c.cut(nw)
			expect := func(at net.Conn, heard bool, text string) {
				t.Helper()
				if heard {
					wantText(t, at, text)
				} else {
					wantNothing(t, at)
				}
			}
			for _, from := range []net.Conn{ab, ab2, ac} {
				send(t, from, "from a")
			}
			for _, from := range []net.Conn{ba, ba2} {
				send(t, from, "from b")
			}
			expect(ba, c.there, "from a")
			expect(ba2, c.there, "from a")
			expect(ab, c.bak, "from b")
			expect(ab2, c.bak, "from b")
			expect(ca, c.other, "from a")
			// Dialing takes both ways.
			if conn, err := a.try(b, aWhile); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("dialed through a cut: %v, %v", conn, err)
			}
			if conn, err := b.try(a, aWhile); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("dialed through a cut: %v, %v", conn, err)
			}
			if self, err := a.try(a, patience); err != nil {
				t.Errorf("a node lost itself: %v", err)
			} else {
				self.Close()
				(<-a.in).Close()
			}
			c.heal(nw)
			for at, heard := range map[net.Conn]bool{ba: c.there, ba2: c.there, ca: c.other} {
				if !heard {
					wantText(t, at, "from a")
				}
			}
			for _, at := range []net.Conn{ab, ab2} {
				if !c.bak {
					wantText(t, at, "from b")
				}
			}
			a.dial(b)
		})
	}
}

// TestEndsWait: the end of a connection does not pass a cut either.
func TestEndsWait(t *testing.T) {
	nw, a, b, _ := three(t)
	near, far := a.dial(b)
	nw.Cut("a", "b")
	send(t, near, "last words")
	near.Close()
	wantNothing(t, far)
	nw.Heal("a", "b")
	wantText(t, far, "last words")
	wantClosed(t, far)
}

// TestDialWaits: a dial that began during a cut comes through after it.
func TestDialWaits(t *testing.T) {
	nw, a, b, _ := three(t)
	nw.Cut("a", "b")
	type result struct {
		c   net.Conn
		err error
	}
	dialed := make(chan result, 1)
	go func() {
		c, err := a.try(b, patience)
		dialed <- result{c, err}
	}()
	select {
	case r := <-dialed:
		t.Fatalf("through a cut: %+v", r)
	case <-time.After(aWhile):
	}
	nw.HealAll()
	if r := <-dialed; r.err != nil {
		t.Error(r.err)
	} else {
		r.c.Close()
		(<-b.in).Close()
	}
}

func TestDelay(t *testing.T) {
	nw, a, b, _ := three(t)
	near, far := a.dial(b)
	nw.Delay("a", "b", aWhile, aWhile)
	start := time.Now()
	const chunks = 10
	for range chunks {
		send(t, near, "x")
		time.Sleep(time.Millisecond) // so that they are chunks of their own
	}
	send(t, far, "y")
	wantText(t, near, "y")
	back := time.Since(start)
	wantText(t, far, "xxxxxxxxxx")
	there := time.Since(start)
	if there < aWhile {
		t.Errorf("what is delayed came after %v, what is not after %v", there, back)
	}
	if there > patience/2 {
		t.Errorf("%d chunks took %v: they wait for each other", chunks, there)
	}
	start = time.Now()
	a.dial(b)
	if d := time.Since(start); d < aWhile {
		t.Errorf("dialed within %v", d)
	}
	// A delay that ends lets what waits arrive when it is due, and the rest at once.
	nw.Heal("a", "b")
	send(t, near, "z")
	wantText(t, far, "z")
}

func TestReset(t *testing.T) {
	nw, a, b, c := three(t)
	near, far := a.dial(b)
	_, from := b.dial(a)
	ac, ca := a.dial(c)
	nw.Reset("b", "a")
	for _, conn := range []net.Conn{near, far, from} {
		wantClosed(t, conn)
	}
	send(t, ac, "still there")
	wantText(t, ca, "still there")
}

// TestRefuse, and B81: a node that comes back on another port is found there.
func TestRefuse(t *testing.T) {
	nw, a, b, _ := three(t)
	nw.Refuse("b", true)
	if _, err := a.try(b, patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	old, _ := a.n.Resolve("b")
	b.l.Close()
	again := newHost(t, b.n)
	nw.Refuse("b", false)
	a.dial(again)
	if conn, err := a.n.Dial(t.Context(), old); err == nil {
		conn.Close()
		t.Error("somebody is at the old address")
	}
	if _, ok := a.n.Resolve("nobody"); ok {
		t.Error("nobody has an address")
	}
	// Somebody's address that is no node's: a proxy, a seed by another name.
	stranger := newHost(t, New(t, 1).Node("x"))
	conn, err := a.n.Dial(t.Context(), stranger.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	(<-stranger.in).Close()
}

// TestFlaky: the same seed closes the same connections.
func TestFlaky(t *testing.T) {
	survivors := func(seed uint64) (alive []bool) {
		nw := New(t, seed)
		a, b := newHost(t, nw.Node("a")), newHost(t, nw.Node("b"))
		nw.Flaky("a", "b", 2)
		for range 16 {
			near, far := a.dial(b)
			send(t, near, "x")
			near.(*net.TCPConn).CloseWrite()
			text, _ := io.ReadAll(far)
			alive = append(alive, len(text) == 1)
		}
		return alive
	}
	first, again := survivors(42), survivors(42)
	lost := 0
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("seed 42 gave %v, then %v", first, again)
		}
		if !first[i] {
			lost++
		}
	}
	if lost == 0 || lost == len(first) {
		t.Errorf("of %d connections %d were closed", len(first), lost)
	}
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
