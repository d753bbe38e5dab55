package peer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCallerGoesAway: a handler hears of it.
func TestCallerGoesAway(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	entered, left := make(chan time.Duration), make(chan error)
	b.HandleCall("wait", func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
		deadline, _ := ctx.Deadline()
		entered <- time.Until(deadline)
		<-ctx.Done()
		left <- ctx.Err()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	failed := make(chan error, 1)
	go func() { failed <- a.Call(ctx, "b", "wait", nil, nil) }()
	if left := <-entered; left < 59*time.Minute || left > time.Hour {
		t.Errorf("the handler has %v, the caller had an hour", left)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnanswered) {
		t.Errorf("the caller gets %v", err)
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler gets %v", err)
	}
}

// TestHostileCaller: calls that are no calls end the connection, and are answered where that is possible.
func TestHostileCaller(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	listen := func(node string, timeout time.Duration) *Transport {
		b := d.node(node, func(c *Config) {
			c.CallTimeout, c.IdleTimeout, c.MaxCallBytes = timeout, timeout/2, 128<<10
		})
		b.HandleCall("ok", func(context.Context, string, json.RawMessage) (any, error) { return "fine", nil })
		return b
	}
	patient, hurried := listen("patient", patience), listen("hurried", 200*time.Millisecond)
	a := d.node("a")
	ok := request{within: patience, method: "ok", body: []byte("null")}
	noTime := ok.bytes()
	clear(noTime[4:8])
	notJSON := request{within: patience, method: "ok", body: []byte("{")}
	large := request{within: patience, method: "ok", body: make([]byte, 200<<10)}
	halfLarge := large.bytes()[:1000]
	halfLarge[1], halfLarge[2] = 1, 0xff // one that may be

	for _, c := range []struct {
		name string
		text []byte
		want []string // of each answer
		ends bool     // then, at once
	}{
		{"one after the other", append(ok.bytes(), ok.bytes()...), []string{`"fine"`, `"fine"`}, false},
		{"no time", noTime, []string{`"fine"`}, false},
		{"not json", notJSON.bytes(), []string{CodeBadRequest}, false},
		{"huge announcement", []byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3}, []string{CodeTooLarge}, true},
		{"huge body", large.bytes(), []string{CodeTooLarge}, true},
		{"frame without a header", []byte{0, 0, 0, 1, 9}, []string{CodeBadRequest}, true},
		{"silence", nil, nil, true},
		{"half a call", ok.bytes()[:10], nil, true},
		{"half a large call", halfLarge, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := "patient"
			if c.want == nil {
				to = "hurried"
			}
			conn, err := a.Dial(t.Context(), to, KindCall, "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go send(conn, string(c.text)) // it may be closed before all of it is written
			if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				r, err := readResult(conn, 1<<20)
				if err != nil || !strings.Contains(string(r.body), want) {
					t.Errorf("answered %q, %v, want %s", r.body, err, want)
				}
			}
			if c.ends {
				if said := wantEnd(t, conn); len(said) > 0 {
					t.Errorf("there is %q more", said)
				}
			}
		})
	}
	for _, b := range []*Transport{patient, hurried} {
		eventually(t, "nothing is left of them", func() bool { return count(b) == 0 })
		if !b.largeCalls.TryAcquire(largeCalls * int64(b.cfg.MaxCallBytes)) {
			t.Error("memory of calls is still held")
		}
	}
}

// TestCallerThatDoesNotRead: its answers go nowhere, and it is let go.
func TestCallerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	a, b := d.node("a"), d.node("b", func(c *Config) { c.CallTimeout = 200 * time.Millisecond })
	b.HandleCall("large", func(context.Context, string, json.RawMessage) (any, error) { return strings.Repeat("x", 3<<20), nil })
	conn, err := a.Dial(t.Context(), "b", KindCall, "")
	if err != nil {
		t.Fatal(err)
	}
	r := request{within: time.Second, method: "large", body: []byte("null")}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer conn.Close()
	writing.Go(func() {
		for range 100 {
			if _, err := conn.Write(r.bytes()); err != nil {
				return
			}
		}
	})
	eventually(t, "it is let go", func() bool { return count(b) == 0 })
}
