package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

func TestSubscribeAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer wire.Message
		tries  int64 // 0: as often as there is time for
		check  func(t *testing.T, err error)
	}{
		{"too old", &wire.SubscribeCursorError{Reason: "too_old", Requested: 1, Available: 5}, 1, func(t *testing.T, err error) {
			if diff := cmp.Diff(&CursorError{Reason: "too_old", Requested: 1, Available: 5}, as[*CursorError](t, err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		}},
		{"not found", &wire.ErrorMsg{Message: "no such stream", Code: "not_found", Retry: "retry_after"}, 1, func(t *testing.T, err error) {
			is(t, err, ErrRetryable)
			if e := as[*Error](t, err); e.Code != wire.CodeNotFound {
				t.Errorf("code %v, want not_found", e.Code)
			}
		}},
		{"forbidden", &wire.ErrorMsg{Message: "no", Code: "forbidden", Retry: "fatal"}, 1, func(t *testing.T, err error) {
			if e := as[*Error](t, err); e.Code != wire.CodeForbidden || e.Retry != wire.RetryFatal {
				t.Errorf("got %+v, want forbidden, fatal", e)
			}
		}},
		{"not ready", &wire.ErrorMsg{
			Message: "wait", Code: "shard_unavailable", Retry: "retry", Detail: &wire.ErrorDetail{Reason: "not_ready", RetryAfterMS: 1},
		}, 0, func(t *testing.T, err error) {
			if diff := cmp.Diff(&Error{
				Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Message: "wait", Reason: "not_ready", RetryAfter: time.Millisecond,
			}, as[*Error](t, err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		}},
		{"unsupported", &wire.Unsupported{RequestType: "subscribe"}, 1, func(t *testing.T, err error) { wantA[*UnsupportedError](t, err) }},
		{"nonsense", &wire.OK{}, 1, func(t *testing.T, err error) { wantA[*ProtocolError](t, err) }},
		{"leader not said", &wire.NotLeader{NodeID: "b2"}, 0, func(t *testing.T, err error) { is(t, err, ErrRetryable) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Subscribe: func(*wire.Subscribe) wire.Message {
				tries.Add(1)
				return tt.answer
			}}})
			cfg := configFor(b)
			cfg.RequestTimeout = time.Second
			c := dial(t, cfg)
			_, err := c.Subscribe(testContext(t), demo, SubscribeConfig{})
			tt.check(t, err)
			if n := tries.Load(); n != tt.tries && (tt.tries > 0 || n < 2) {
				t.Errorf("asked %d times, want %d", n, tt.tries)
			}
			if n := c.Connections()[0].Subscriptions; n != 0 {
				t.Errorf("%d subscriptions are counted, want 0", n)
			}
		})
	}
}

func TestSubscribeRequest(t *testing.T) {
	requests := make(chan *wire.Subscribe, 4)
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Subscribe: func(m *wire.Subscribe) wire.Message {
		requests <- m
		return &wire.ErrorMsg{Message: "seen", Code: "forbidden"}
	}}})
	c := dial(t, configFor(b))
	for _, cfg := range []SubscribeConfig{{}, {Start: Earliest(), Shard: 3}, {Start: At(1 << 63)}} {
		if _, err := c.Subscribe(testContext(t), demo, cfg); err == nil {
			t.Fatal("no error")
		}
	}
	for _, want := range []*wire.Subscribe{
		{TenantID: "t1", Namespace: "default", Stream: "demo", Start: &wire.Start{}},
		{TenantID: "t1", Namespace: "default", Stream: "demo", Start: &wire.Start{Kind: wire.StartEarliest}, Shard: new(uint32(3))},
		{TenantID: "t1", Namespace: "default", Stream: "demo", Start: &wire.Start{Kind: wire.StartOffset, Offset: 1 << 63}},
	} {
		if diff := cmp.Diff(want, <-requests); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
}

// The event stream and the answer come in either order.
func TestEventStreamAndAnswerInEitherOrder(t *testing.T) {
	for _, streamFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream first %v", streamFirst), func(t *testing.T) {
			var ids atomic.Uint64
			b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Order: func(s *fakebroker.Sub) bool {
				ids.Add(1)
				if !streamFirst {
					<-s.Answered
					time.Sleep(20 * time.Millisecond) // the answer is well ahead
				}
				return true
			}, Request: func(wire.Message) wire.Message { return nil }}})
			b.Store().Append(demoKey, payloads(1)...)
			c := dial(t, configFor(b))
			sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
			next(t, sub, 1)
		})
	}
}

// An event stream that never begins costs its subscribe, within the time of a request, and no other one.
func TestEventStreamThatDoesNotBegin(t *testing.T) {
	var first atomic.Bool
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Order: func(*fakebroker.Sub) bool { return first.Swap(true) }}})
	b.Store().Append(demoKey, payloads(1)...)
	cfg := configFor(b)
	cfg.RequestTimeout = 300 * time.Millisecond
	c := dial(t, cfg)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Subscribe(testContext(t), demo, SubscribeConfig{Start: Earliest(), NoReconnect: true})
		failed <- err
	}()
	until(t, "the first subscribe to be there", first.Load)
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	next(t, sub, 1)
	is(t, <-failed, ErrRetryable)
	until(t, "only one subscription to be counted", func() bool { return c.Connections()[0].Subscriptions == 1 })
}

// A subscribe that was given up must not leave its subscription at the broker.
func TestSubscribeGivenUp(t *testing.T) {
	release := make(chan struct{})
	live := make(chan *fakebroker.Sub, 1)
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{
		Order: func(*fakebroker.Sub) bool { <-release; return true },
		Events: func(s *fakebroker.Sub) bool {
			live <- s
			<-s.Gone()
			return true
		},
	}})
	c := dial(t, configFor(b))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Subscribe(ctx, demo, SubscribeConfig{})
	is(t, err, context.DeadlineExceeded)
	close(release)
	select {
	case <-(<-live).Gone():
	case <-time.After(10 * time.Second):
		t.Error("the broker still serves a subscription that nobody has")
	}
}

func TestRedirects(t *testing.T) {
	identity, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	// Each broker sends on to the one whose number it is given; -1: serves.
	tests := []struct {
		name    string
		sendsTo []int
		asked   int64
		fails   bool
	}{
		{"one hop", []int{1, -1}, 2, false},
		{"three hops", []int{1, 2, 3, -1}, 4, false},
		{"four hops", []int{1, 2, 3, 4, -1}, 4, true},
		{"circle", []int{1, 0}, 3, true},
		{"to itself", []int{0}, 2, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			brokers := make([]*fakebroker.Broker, len(tt.sendsTo))
			var asked atomic.Int64
			ready := make(chan struct{})
			for i, to := range tt.sendsTo {
				brokers[i] = startBroker(t, fakebroker.Config{Identity: identity, Hooks: fakebroker.Hooks{
					Subscribe: func(*wire.Subscribe) wire.Message {
						<-ready
						asked.Add(1)
						if to < 0 {
							return nil
						}
						return &wire.NotLeader{NodeID: fmt.Sprint("b", to), Addr: brokers[to].Addr(), Generation: 4}
					},
				}})
				brokers[i].Store().Append(demoKey, fmt.Appendf(nil, "from %d", i))
			}
			close(ready)
			c := dial(t, configFor(brokers[0]))
			sub, err := c.Subscribe(testContext(t), demo, SubscribeConfig{Start: Earliest(), NoReconnect: true})
			if n := asked.Load(); n != tt.asked {
				t.Errorf("%d requests, want %d", n, tt.asked)
			}
			if tt.fails {
				if e := as[*Error](t, err); e.Code != wire.CodeNotLeader {
					t.Errorf("got %+v, want not_leader", e)
				}
				return
			}
			if err != nil {
				t.Fatalf("subscribe: %v", err)
			}
			if got := next(t, sub, 1); got[0] != fmt.Sprintf("0:from %d", len(brokers)-1) {
				t.Errorf("got %v from the wrong broker", got)
			}
		})
	}
}
