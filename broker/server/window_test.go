package server

import (
	"testing"

	"github.com/quic-go/quic-go"
)

func TestWindows(t *testing.T) {
	w := newWindows(100)
	a, b := new(quic.Conn), new(quic.Conn)
	if w.allow(a, 1) {
		t.Error("a connection that has not authenticated grew")
	}
	w.open(a)
	w.open(b)
	if !w.allow(a, 60) || !w.allow(b, 40) || w.allow(a, 1) {
		t.Error("the budget of 100 was not kept")
	}
	w.open(a) // again: keeps what it has
	w.forget(a)
	if w.allow(a, 1) {
		t.Error("a forgotten connection grew")
	}
	if !w.allow(b, 60) || w.allow(b, 1) {
		t.Error("what was forgotten is not free, or more than that")
	}
	w.forget(b)
	if w.granted != 0 {
		t.Errorf("%d left", w.granted)
	}
}
