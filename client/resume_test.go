package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

// fast makes a dead broker show soon.
func fast(cfg Config) Config {
	cfg.KeepAlive, cfg.IdleTimeout = 200*time.Millisecond, 600*time.Millisecond
	cfg.DialTimeout, cfg.DialStagger = 500*time.Millisecond, 100*time.Millisecond
	return cfg
}

// restart starts a broker again where another one was.
func restartBroker(t *testing.T, old *fakebroker.Broker, cfg fakebroker.Config) *fakebroker.Broker {
	t.Helper()
	cfg.Addr, cfg.Identity = old.Addr(), old.Identity()
	if cfg.Store == nil {
		cfg.Store = old.Store()
	}
	return startBroker(t, cfg)
}

// B35, B63: a broker that is killed and comes back is resumed at last+1; the application keeps its object.
func TestResumeAfterKill(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(3)...)
	c := dial(t, fast(configFor(b)))
	lost, resumed := make(chan error, 1), make(chan Resumed, 1)
	sub := subscribe(t, c, demo, SubscribeConfig{
		Start: Earliest(),
		OnLost: func(err error) {
			lost <- err
		},
		OnResumed: func(r Resumed) { resumed <- r },
	})
	next(t, sub, 3)
	b.Kill()
	got := make(chan []string, 1)
	go func() { got <- next(t, sub, 2) }()
	if err := <-lost; err == nil {
		t.Error("lost without a reason")
	}
	again := restartBroker(t, b, fakebroker.Config{})
	again.Store().Append(demoKey, fmt.Append(nil, "r3"), fmt.Append(nil, "r4"))
	if diff := cmp.Diff(listed(3, 5), <-got); diff != "" {
		t.Errorf("after the restart (-want +got):\n%s", diff)
	}
	if r := <-resumed; r.Position != 3 || r.Attempts < 1 || r.Down <= 0 {
		t.Errorf("resumed: got %+v", r)
	}
}

// B35: if the broker stays away, Next returns an error that says where to go on.
func TestResumeGivesUp(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(3)...)
	c := dial(t, fast(configFor(b)))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest(), ResumeTimeout: 1500 * time.Millisecond})
	next(t, sub, 3)
	b.Kill()
	began := time.Now()
	_, err := sub.Next(testContext(t))
	if e := as[*LostError](t, err); e.Position != 3 || !e.Resumable {
		t.Errorf("got %+v, want position 3", e)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	_, again := sub.Next(testContext(t))
	is(t, again, err)
}

// The caller's context ends a call in the middle of resuming, and the next call goes on with it.
func TestResumeHonoursContextAndClose(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, fast(configFor(b)))
	lost := make(chan struct{}, 1)
	sub := subscribe(t, c, demo, SubscribeConfig{OnLost: func(error) { lost <- struct{}{} }})
	b.Kill()
	for len(lost) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		_, err := sub.Next(ctx)
		cancel()
		is(t, err, context.DeadlineExceeded)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := sub.Next(context.Background())
		waiting <- err
	}()
	until(t, "Next to run", sub.busy.Load)
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	is(t, <-waiting, ErrClosed)
}

// ender ends the first event streams in some way, one after another, and serves the rest.
func ender(ends ...func(s *fakebroker.Sub)) func(s *fakebroker.Sub) bool {
	var n atomic.Int64
	return func(s *fakebroker.Sub) bool {
		i := int(n.Add(1)) - 1
		if i >= len(ends) {
			return false
		}
		ends[i](s)
		return true
	}
}

func TestResume(t *testing.T) {
	lagAt := func(n uint64) func(s *fakebroker.Sub) {
		return func(s *fakebroker.Sub) {
			s.DeliverTo(s.Start, n)
			s.Finish(&wire.SubscriptionLagged{SubscriptionID: s.ID, ResumeFrom: n})
		}
	}
	resetAt := func(n uint64) func(s *fakebroker.Sub) {
		return func(s *fakebroker.Sub) {
			s.DeliverTo(s.Start, n)
			time.Sleep(20 * time.Millisecond) // a reset takes back what was not read yet
			s.Reset()
		}
	}
	tests := []struct {
		name         string
		ends         []func(s *fakebroker.Sub)
		lags, losses int
	}{
		{"lagged", []func(s *fakebroker.Sub){lagAt(3)}, 1, 0},
		{"lagged again and again", []func(s *fakebroker.Sub){lagAt(1), lagAt(2), lagAt(3), lagAt(3), lagAt(5)}, 5, 0},
		// B19 on the client's side: "not served here any more" is resumed.
		{"reset", []func(s *fakebroker.Sub){resetAt(2), resetAt(2), resetAt(7)}, 0, 3},
		{"moved", []func(s *fakebroker.Sub){func(s *fakebroker.Sub) {
			s.DeliverTo(s.Start, 4)
			s.Finish(&wire.ShardMoved{SubscriptionID: s.ID, ResumeFrom: new(uint64(4))})
		}}, 0, 1},
		// B30: nothing was delivered yet, so it goes on from where it began.
		{"before the first record", []func(s *fakebroker.Sub){func(s *fakebroker.Sub) {
			s.Finish(&wire.SubscriptionLagged{SubscriptionID: s.ID, ResumeFrom: 0})
		}}, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Events: ender(tt.ends...)}})
			const n = 10
			b.Store().Append(demoKey, payloads(n)...)
			c := dial(t, configFor(b))
			var lags, losses, resumes, gaps int
			sub := subscribe(t, c, demo, SubscribeConfig{
				Start:     Earliest(),
				OnLagged:  func(_, _ uint64) { lags++ },
				OnLost:    func(error) { losses++ },
				OnResumed: func(Resumed) { resumes++ },
				OnGap:     func(_, _ uint64) { gaps++ },
			})
			if diff := cmp.Diff(listed(0, n), next(t, sub, n)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			got := [4]int{lags, losses, resumes, gaps}
			if want := [4]int{tt.lags, tt.losses, tt.lags + tt.losses, 0}; got != want {
				t.Errorf("lags, losses, resumes, gaps: got %v, want %v", got, want)
			}
			if n := c.Connections()[0].Subscriptions; n != 1 {
				t.Errorf("%d subscriptions are counted, want 1", n)
			}
		})
	}
}

// A broker that takes a subscription and ends it at once must not be asked in a hot loop.
func TestResumeWithoutProgressBacksOff(t *testing.T) {
	var subs atomic.Int64
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Events: func(s *fakebroker.Sub) bool {
		subs.Add(1)
		s.Finish(&wire.SubscriptionLagged{SubscriptionID: s.ID})
		return true
	}}})
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := sub.Next(ctx)
	is(t, err, context.DeadlineExceeded)
	if n := subs.Load(); n > 30 {
		t.Errorf("subscribed %d times in a second", n)
	}
}

func TestResumePositionGone(t *testing.T) {
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprintf("skip %v", skip), func(t *testing.T) {
			var b *fakebroker.Broker
			b = startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Events: ender(func(s *fakebroker.Sub) {
				s.DeliverTo(0, 2)
				b.Store().Trim(demoKey, 6)
				s.Finish(&wire.SubscriptionLagged{SubscriptionID: s.ID, ResumeFrom: 2})
			})}})
			b.Store().Append(demoKey, payloads(8)...)
			c := dial(t, configFor(b))
			var gaps []string
			sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest(), SkipLost: skip, OnGap: func(from, to uint64) {
				gaps = append(gaps, fmt.Sprintf("%d-%d", from, to))
			}})
			next(t, sub, 2)
			if !skip {
				_, err := sub.Next(testContext(t))
				want := &CursorError{Reason: "too_old", Requested: 2, Available: 6}
				if diff := cmp.Diff(want, as[*CursorError](t, err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				return
			}
			e, err := sub.Next(testContext(t))
			if err != nil || e.Offset != 6 || e.Gap != 4 {
				t.Errorf("got %+v, error %v; want offset 6 behind a gap of 4", e, err)
			}
			if diff := cmp.Diff([]string{"2-6"}, gaps); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
		})
	}
}

// B29: a log that is shorter after a restart is told at once, never waited for.
func TestResumeInTheFuture(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(10)...)
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	next(t, sub, 10)
	shorter := fakebroker.NewStore()
	shorter.Append(demoKey, payloads(8)...)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	restartBroker(t, b, fakebroker.Config{Store: shorter})
	_, err := sub.Next(testContext(t))
	want := &CursorError{Reason: "in_future", Requested: 10, Available: 8}
	if diff := cmp.Diff(want, as[*CursorError](t, err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// A planned move: the broker that is named is asked first, and another one of the addresses takes over when the first
// one is gone.
func TestResumeAtAnotherBroker(t *testing.T) {
	identity, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	store := fakebroker.NewStore()
	store.Append(demoKey, payloads(6)...)
	second := startBroker(t, fakebroker.Config{Identity: identity, Store: store})
	first := startBroker(t, fakebroker.Config{Identity: identity, Store: store, Hooks: fakebroker.Hooks{
		Events: ender(func(s *fakebroker.Sub) {
			s.DeliverTo(0, 2)
			s.Finish(&wire.ShardMoved{SubscriptionID: s.ID, NodeID: "b2", Addr: second.Addr(), ResumeFrom: new(uint64(2))})
		}),
	}})
	third := startBroker(t, fakebroker.Config{Identity: identity, Store: store})
	cfg := fast(configFor(first))
	cfg.Addrs = append(cfg.Addrs, third.Addr())
	c := dial(t, cfg)
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	if diff := cmp.Diff(listed(0, 6), next(t, sub, 6)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(second.Subs()) != 1 {
		t.Error("the broker that was named does not serve the subscription")
	}
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	store.Append(demoKey, []byte("r6"))
	if diff := cmp.Diff(listed(6, 7), next(t, sub, 1)); diff != "" {
		t.Errorf("events after the loss (-want +got):\n%s", diff)
	}
	if len(third.Subs()) != 1 {
		t.Error("the broker that is left does not serve the subscription")
	}
}

func TestResumeRefusedForGood(t *testing.T) {
	var refuse atomic.Bool
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{
		Subscribe: func(*wire.Subscribe) wire.Message {
			if refuse.Load() {
				return &wire.ErrorMsg{Message: "no more", Code: "forbidden", Retry: "fatal"}
			}
			return nil
		},
		Events: func(s *fakebroker.Sub) bool {
			refuse.Store(true)
			s.Finish(&wire.SubscriptionLagged{SubscriptionID: s.ID})
			return true
		},
	}})
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{})
	_, err := sub.Next(testContext(t))
	wantA[*LostError](t, err)
	if e := as[*Error](t, err); e.Code != wire.CodeForbidden {
		t.Errorf("got %+v, want forbidden", e)
	}
}

// A broker that is shutting down sends what is new away: it goes to the other one at once, publishes too.
func TestDrainingBroker(t *testing.T) {
	identity, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	store := fakebroker.NewStore()
	store.Append(demoKey, payloads(3)...)
	var draining atomic.Bool
	first := startBroker(t, fakebroker.Config{Identity: identity, Store: store, Hooks: fakebroker.Hooks{
		Auth: func(*wire.Auth) wire.Message {
			if draining.Load() {
				return &wire.ErrorMsg{Message: "shutting down", Code: "draining", Retry: "retry"}
			}
			return nil
		},
		Events: ender(func(s *fakebroker.Sub) {
			s.DeliverTo(0, 2)
			draining.Store(true)
			s.Finish(&wire.ShardMoved{SubscriptionID: s.ID})
		}),
	}})
	second := startBroker(t, fakebroker.Config{Identity: identity, Store: store})
	c := dial(t, configFor(first, second))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	if diff := cmp.Diff(listed(0, 3), next(t, sub, 3)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(second.Subs()) != 1 {
		t.Error("the other broker does not serve the subscription")
	}
	// The connection to the first broker still lives.
	if n := len(c.Connections()); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	for range 3 {
		if _, err := c.Publish(testContext(t), demo, Message{Payload: []byte("x")}); err != nil {
			t.Errorf("publish: %v", err)
		}
	}
}
