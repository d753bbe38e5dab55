package faultnet

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

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
