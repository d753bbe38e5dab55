package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

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

// TestFlaky: the same seed closes the same connections.
func TestFlaky(t *testing.T) {
	survivors := func(seed uint64) (alive []bool) {
		nw := New(t, seed)
		a, b := newHost(t, nw.Node("a")), newHost(t, nw.Node("b"))
		nw.Flaky("a", "b", 2)
		for range 16 {
			near, far := a.dial(b)
			send(t, near, "x")
			if tcp, ok := near.(*net.TCPConn); !ok || tcp.CloseWrite() != nil {
				t.Log("it is closed already, or cannot be half")
			}
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

// TestStrand: connections that exist are dead and nobody is told; new ones work.
func TestStrand(t *testing.T) {
	nw, a, b, c := three(t)
	near, far := a.dial(b)
	_, from := b.dial(a)
	ac, ca := a.dial(c)
	nw.Strand("a", "b")
	nw.HealAll()
	send(t, near, "lost")
	near.Close()
	wantNothing(t, far)
	send(t, from, "lost")
	again, there := a.dial(b)
	send(t, again, "heard")
	wantText(t, there, "heard")
	send(t, ac, "still there")
	wantText(t, ca, "still there")
	wantNothing(t, far)
}
