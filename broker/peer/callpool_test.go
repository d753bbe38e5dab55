package peer

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCallAtOnce: many calls at once get their own answers, within the bound.
func TestCallAtOnce(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	const bound = 8
	a, b := d.node("a", func(c *Config) { c.MaxCallsPerPeer = bound }), d.node("b")
	var now, most atomic.Int64
	b.HandleCall("echo", func(_ context.Context, _ string, body json.RawMessage) (any, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); {
			m = most.Load()
		}
		return body, nil
	})
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var got int
			if err := a.Call(ctx, "b", "echo", i, &got); err != nil || got != i {
				t.Errorf("%d: got %d, %v", i, got, err)
			}
		})
	}
	calls.Wait()
	if most.Load() > bound {
		t.Errorf("%d calls at once, want at most %d", most.Load(), bound)
	}
	eventually(t, "few connections are kept", func() bool { return len(connsOf(b)) <= maxIdle })
}

// TestCallWaitsForRoom: and no longer than its context.
func TestCallWaitsForRoom(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a", func(c *Config) { c.MaxCallsPerPeer = 1 }), d.node("b")
	entered, leave := make(chan struct{}), make(chan struct{})
	b.HandleCall("hold", func(context.Context, string, json.RawMessage) (any, error) {
		close(entered)
		<-leave
		return nil, nil
	})
	first := make(chan error, 1)
	go func() { first <- a.Call(t.Context(), "b", "hold", nil, nil) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := a.Call(ctx, "b", "hold", nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	a, b := d.node("a", func(c *Config) { c.IdleTimeout = 10 * time.Millisecond }), d.node("b")
	b.HandleCall("ok", func(context.Context, string, json.RawMessage) (any, error) { return nil, nil })
	for range 3 {
		if err := a.Call(t.Context(), "b", "ok", nil, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "idle connections end", func() bool { return count(a) == 0 && count(b) == 0 })
	}
	eventually(t, "no pool is left", func() bool {
		a.calls.mu.Lock()
		defer a.calls.mu.Unlock()
		return len(a.calls.of) == 0
	})

	// A handler may take longer than connections idle.
	c := d.node("c", func(c *Config) { c.IdleTimeout = 250 * time.Millisecond })
	c.HandleCall("slow", func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(700 * time.Millisecond):
			return nil, nil
		}
	})
	if err := b.Call(t.Context(), "c", "slow", nil, nil); err != nil {
		t.Error(err)
	}
	// And the other side closes what this one keeps, in the end.
	quiet, err := b.Dial(t.Context(), "c", KindCall, "")
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	wantEnd(t, quiet)
}
