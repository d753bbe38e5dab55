package peer

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/peer/faultnet"
)

// onNetwork starts nodes that reach each other through a network that fails on demand.
func onNetwork(t *testing.T, change func(*Config), names ...string) (*faultnet.Network, map[string]*Transport) {
	t.Helper()
	d, nw, nodes := newTown(t), faultnet.New(t, 0), map[string]*Transport{}
	for _, name := range names {
		n := nw.Node(name)
		tr := d.node(name, func(c *Config) {
			c.DialNet, c.Resolve = n.Dial, n.Resolve
			change(c)
		})
		n.SetAddr(tr.Addr().String())
		tr.Handle(KindRaft, echo)
		tr.HandleCall("ok", func(context.Context, string, json.RawMessage) (any, error) { return name, nil })
		nodes[name] = tr
	}
	return nw, nodes
}

// TestCut: nothing that goes through a network that swallows everything takes longer than it may.
func TestCut(t *testing.T) {
	t.Parallel()
	nw, nodes := onNetwork(t, func(*Config) {}, "a", "b", "c")
	a := nodes["a"]
	call := func(to string, within time.Duration) (who string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		err = a.Call(ctx, to, "ok", nil, &who)
		return who, err
	}
	const short = 100 * time.Millisecond
	if who, err := call("b", patience); err != nil || who != "b" {
		t.Fatal(who, err)
	}
	conn, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []func(){
		func() { nw.Cut("a", "b") }, func() { nw.CutOneWay("a", "b") }, func() { nw.CutOneWay("b", "a") },
	} {
		cut()
		// On the connection that is there: whether it arrived is not known.
		if _, err := call("b", short); !errors.Is(err, ErrUnanswered) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call got %v", err)
		}
		if _, err := call("b", short); !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that needs a new connection got %v", err)
		}
		if _, err := call("c", patience); err != nil {
			t.Errorf("a call to another one: %v", err)
		}
		nw.HealAll()
		if who, err := call("b", patience); err != nil || who != "b" {
			t.Errorf("after it: %q, %v", who, err)
		}
	}
	nw.Cut("a", "b")
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestStranded is B80 for calls: a peer that came back without a word costs one call, however many connections idled.
func TestStranded(t *testing.T) {
	t.Parallel()
	nw, nodes := onNetwork(t, func(*Config) {}, "a", "b")
	a, b := nodes["a"], nodes["b"]
	meet := make(chan struct{})
	b.HandleCall("meet", func(context.Context, string, json.RawMessage) (any, error) { // two at once need two connections
		select {
		case meet <- struct{}{}:
		case <-meet:
		}
		return nil, nil
	})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if err := a.Call(t.Context(), "b", "meet", nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	nw.Strand("a", "b")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := a.Call(ctx, "b", "ok", nil, nil); !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
	if err := a.Call(t.Context(), "b", "ok", nil, nil); err != nil {
		t.Errorf("the next one got %v", err)
	}
}

// TestDialTimeout: dialing what swallows everything is bounded without a context that is.
func TestDialTimeout(t *testing.T) {
	nw, nodes := onNetwork(t, func(c *Config) { c.HandshakeTimeout = 50 * time.Millisecond }, "a", "b")
	nw.Isolate("b")
	if c, err := nodes["a"].Dial(t.Context(), "b", KindRaft, ""); !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", c, err)
	}
}

// TestChurn: connections that break at random break nothing else.
func TestChurn(t *testing.T) {
	t.Parallel()
	nw, nodes := onNetwork(t, func(*Config) {}, "a", "b")
	nw.Flaky("a", "b", 5)
	good := 0
	for range 100 {
		var who string
		err := nodes["a"].Call(t.Context(), "b", "ok", nil, &who)
		switch {
		case err == nil && who == "b":
			good++
		case err == nil:
			t.Errorf("got the answer %q", who)
		case !errors.Is(err, ErrUnanswered) && !errors.Is(err, ErrUnreachable):
			t.Errorf("got %v", err)
		}
	}
	if good == 0 {
		t.Error("no call came through")
	}
	nw.HealAll()
	eventually(t, "all is well", func() bool { return nodes["a"].Call(t.Context(), "b", "ok", nil, nil) == nil })
}
