package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type greetingBody struct {
	Name string `json:"name"`
}

func TestCall(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	b.HandleCall("greet", func(_ context.Context, from string, body json.RawMessage) (any, error) {
		var g greetingBody
		if err := json.Unmarshal(body, &g); err != nil {
			return nil, err
		}
		return greetingBody{Name: from + " calls " + g.Name}, nil
	})
	b.HandleCall("nothing", func(context.Context, string, json.RawMessage) (any, error) { return nil, nil })
	b.HandleCall("far too much", func(context.Context, string, json.RawMessage) (any, error) {
		return strings.Repeat("x", b.cfg.MaxCallBytes), nil
	})
	b.HandleCall("not json", func(context.Context, string, json.RawMessage) (any, error) { return func() {}, nil })
	shared := &Error{Code: "not_leader", Message: "ask c", Retry: true}
	b.HandleCall("typed", func(context.Context, string, json.RawMessage) (any, error) {
		return nil, fmt.Errorf("somewhere: %w", shared)
	})
	b.HandleCall("plain", func(context.Context, string, json.RawMessage) (any, error) {
		return nil, errors.New(strings.Repeat("long ", 1000))
	})
	b.HandleCall("slow", func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, fmt.Errorf("waiting: %w", ctx.Err())
	})

	for range 3 {
		for _, call := range []func(resp any) error{
			func(resp any) error { return a.Call(t.Context(), "b", "greet", greetingBody{"b"}, resp) },
			func(resp any) error {
				return a.CallAddr(t.Context(), b.Addr().String(), "greet", greetingBody{"b"}, resp)
			},
		} {
			var got greetingBody
			if err := call(&got); err != nil || got.Name != "a calls b" {
				t.Errorf("got %+v, %v", got, err)
			}
			if err := call(nil); err != nil {
				t.Error(err)
			}
		}
	}
	if n := len(connsOf(b)); n != 2 {
		t.Errorf("%d connections for calls one after the other, want one for the node and one for the address", n)
	}
	if err := b.Call(t.Context(), "b", "greet", greetingBody{"itself"}, nil); err != nil {
		t.Errorf("a node cannot call itself: %v", err)
	}

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, c := range []struct {
		name, method string
		ctx          context.Context
		req, resp    any
		want         *Error
		is           error
	}{
		{name: "no answer asked for", method: "nothing"},
		{name: "typed", method: "typed", want: &Error{Code: "not_leader", Message: "ask c", Retry: true}},
		{name: "plain", method: "plain", want: &Error{Code: CodeInternal, Message: strings.Repeat("long ", 1000)[:512]}},
		{name: "unknown", method: "what", want: &Error{Code: CodeUnknownMethod, Message: `node b has no method "what"`, Retry: true}},
		{name: "answer too large", method: "far too much", want: &Error{Code: CodeTooLarge, Message: fmt.Sprintf("an answer of %d bytes", 4<<20+2)}},
		{name: "answer is no json", method: "not json", want: &Error{Code: CodeInternal, Message: "answer: json: unsupported type: func()"}},
		{name: "request too large", method: "nothing", req: strings.Repeat("x", 4<<20), is: ErrTooLarge},
		{name: "method too long", method: strings.Repeat("x", 256), is: ErrTooLarge},
		{name: "as large as may be", method: "nothing", req: strings.Repeat("x", 4<<20-2)},
		{name: "answer of another type", method: "greet", req: greetingBody{"b"}, resp: new(int), is: ErrUnanswered},
		{name: "out of time", method: "slow", ctx: short, is: context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			err := a.Call(c.ctx, "b", c.method, c.req, c.resp)
			var got *Error
			switch {
			case c.is != nil:
				if !errors.Is(err, c.is) {
					t.Errorf("got %v, want %v", err, c.is)
				}
			case c.want == nil:
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &got):
				t.Errorf("got %v, want %+v", err, c.want)
			default:
				if diff := cmp.Diff(got, c.want); diff != "" {
					t.Errorf("(-got +want)\n%s", diff)
				}
			}
		})
	}
	if err := a.Call(t.Context(), "b", "greet", func() {}, nil); err == nil {
		t.Error("a request that is no json was sent")
	}
	if err := a.Call(t.Context(), "nobody", "greet", nil, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("calling nobody: %v", err)
	}
	eventually(t, "pools without connections are forgotten", func() bool {
		a.calls.mu.Lock()
		defer a.calls.mu.Unlock()
		return len(a.calls.of) <= 2
	})
}

// TestHandlerOutOfTime: the caller's time is the handler's, and its error says that it was that.
func TestHandlerOutOfTime(t *testing.T) {
	d := newTown(t)
	a := d.node("a")
	a.HandleCall("slow", func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, fmt.Errorf("waiting: %w", ctx.Err())
	})
	r := request{within: time.Millisecond, method: "slow", body: []byte("null")}
	want := string(failure(&Error{Code: CodeTimeout, Message: "waiting: context deadline exceeded"}))
	if got := string(a.answerCall(t.Context(), "b", &r)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
