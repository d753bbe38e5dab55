package peer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"testing"
)

// TestPeerGoesAway: a call that was sent is unanswered; one that finds only dead connections gets a new one.
func TestPeerGoesAway(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	ok := func(context.Context, string, json.RawMessage) (any, error) { return nil, nil }
	entered := make(chan struct{}, 1)
	b.HandleCall("die", func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, nil
	})
	b.HandleCall("ok", ok)
	if err := a.Call(t.Context(), "b", "ok", nil, nil); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- a.Call(t.Context(), "b", "die", nil, nil) }()
	<-entered
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
	eventually(t, "the dead connections are noticed", func() bool { return len(connsOf(a)) == 0 })
	if err := a.Call(t.Context(), "b", "ok", nil, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("calling one that is gone: %v", err)
	}
	d.node("b").HandleCall("ok", ok)
	if err := a.Call(t.Context(), "b", "ok", nil, nil); err != nil {
		t.Errorf("calling one that is back: %v", err)
	}
}

// TestDeadConnectionIsReplaced: one that broke at this side is found out by writing, and nothing was sent.
func TestDeadConnectionIsReplaced(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	var calls atomic.Int64
	b.HandleCall("count", func(context.Context, string, json.RawMessage) (any, error) { return calls.Add(1), nil })
	for range 20 {
		if err := a.Call(t.Context(), "b", "count", nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, c := range connsOf(a) {
			c.socket.Close()
		}
	}
	if calls.Load() != 20 {
		t.Errorf("%d calls were carried out", calls.Load())
	}
}

// TestHostileAnswers: a caller gets an error that says that nothing is known.
func TestHostileAnswers(t *testing.T) {
	d := newTown(t)
	a := d.node("a", func(c *Config) { c.MaxCallBytes = 1000 })
	b := d.config("b")
	for _, c := range []struct {
		name, text string
		is         error // nil: the call succeeds
	}{
		{"garbage", "\x00\x00\x00\x05\x09xxxx", ErrProtocol},
		{"huge", "\x7f\xff\xff\xff", ErrTooLarge},
		{"not json", "\x00\x00\x00\x02\x00{", ErrUnanswered},
		{"error that is none", "\x00\x00\x00\x02\x01{", ErrProtocol},
		{"two", "\x00\x00\x00\x05\x00null\x00\x00\x00\x05\x00null", nil},
		{"half", "\x00\x00\x00\x05\x00nu", io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			evil := d.listen(b)
			evil.mu.Lock()
			evil.handlers[KindCall] = func(_ context.Context, conn *Conn) {
				defer conn.Close()
				if _, err := readRequest(conn, 100, nil); err == nil {
					send(conn, c.text)
				}
			}
			evil.mu.Unlock()
			evil.Serve()
			var got any
			err := a.Call(t.Context(), "b", "m", 1, &got)
			if c.is == nil {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, ErrUnanswered) || !errors.Is(err, c.is) {
				t.Errorf("got %v, want %v", err, c.is)
			}
			eventually(t, "the connection is gone", func() bool { return count(a) == 0 })
		})
	}
}
