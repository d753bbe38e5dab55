package client

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/client/internal/fakebroker"
)

// The rule of fixed windows (B02): so many subscriptions of one connection never read, and the others get everything.
// With windows that only fit some streams all of them would stop, and with windows that just fit all of them the last
// reader would.
func TestStalledReaders(t *testing.T) {
	const n = 12
	for _, stalled := range []int{n / 2, n - 1} {
		t.Run(fmt.Sprintf("%d of %d", stalled, n), func(t *testing.T) { testStalled(t, n, stalled) })
	}
}

func testStalled(t *testing.T, n, stalled int) {
	const (
		records = 60
		size    = 16 << 10 // 60 x 16 KiB are many windows of 32 KiB
	)
	b := startBroker(t, fakebroker.Config{})
	cfg := configFor(b)
	cfg.StreamWindow, cfg.MaxSubscriptionsPerConn = 32<<10, n
	c := dial(t, cfg)
	subs := make([]*Subscription, n)
	for i := range subs {
		subs[i] = subscribe(t, c, demo, SubscribeConfig{})
	}
	if conns := c.Connections(); len(conns) != 1 || conns[0].Subscriptions != n {
		t.Fatalf("got %+v, want %d subscriptions on one connection", conns, n)
	}
	ctx := testContext(t)
	payload := make([]byte, size)
	var readers sync.WaitGroup
	for _, sub := range subs[stalled:] {
		readers.Go(func() {
			for got := 0; got < records; {
				batch, err := sub.NextBatch(ctx)
				if err != nil {
					t.Errorf("a reader stopped after %d of %d records: %v", got, records, err)
					return
				}
				got += len(batch)
			}
		})
	}
	for range records {
		b.Store().Append(demoKey, payload)
	}
	readers.Wait()
	// A publisher on the same connection gets its answers too (B04).
	if _, err := c.Publish(ctx, demo, Message{Payload: payload}); err != nil {
		t.Errorf("publish beside stalled readers: %v", err)
	}
	// And those that were stalled have lost nothing.
	for _, sub := range subs[:stalled] {
		if e, err := sub.Next(ctx); err != nil || e.Offset != 0 {
			t.Errorf("a stalled reader got offset %d, error %v; want 0", e.Offset, err)
		}
	}
}

func TestAnotherConnectionBeyondTheLimit(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(1)...)
	cfg := configFor(b)
	cfg.MaxSubscriptionsPerConn = 3
	c := dial(t, cfg)
	var mu sync.Mutex
	var subs []*Subscription
	var subscribing sync.WaitGroup
	ctx := testContext(t)
	for range 10 {
		subscribing.Go(func() {
			sub, err := c.Subscribe(ctx, demo, SubscribeConfig{Start: Earliest()})
			if err != nil {
				t.Errorf("subscribe: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			subs = append(subs, sub)
		})
	}
	subscribing.Wait()
	total := 0
	for _, info := range c.Connections() {
		if info.Subscriptions > 3 {
			t.Errorf("%d subscriptions on one connection, want at most 3", info.Subscriptions)
		}
		total += info.Subscriptions
	}
	if total != 10 || len(c.Connections()) != 4 {
		t.Errorf("%d subscriptions on %d connections, want 10 on 4", total, len(c.Connections()))
	}
	for _, sub := range subs {
		next(t, sub, 1)
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}
	// The places are free again: no further connection is needed.
	for range 10 {
		subscribe(t, c, demo, SubscribeConfig{})
	}
	if n := len(c.Connections()); n != 4 {
		t.Errorf("%d connections, want 4", n)
	}
}

// B59: streams that were given up are closed on both sides, so that the limit is never used up.
func TestSubscribeAndLeaveManyTimes(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(1)...)
	cfg := configFor(b)
	cfg.MaxSubscriptionsPerConn = 4 // and so 68 event streams
	c := dial(t, cfg)
	for i := range 150 {
		sub, err := c.Subscribe(testContext(t), demo, SubscribeConfig{Start: Earliest()})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if i%2 == 0 {
			next(t, sub, 1)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the broker to be rid of all", func() bool { return len(b.Subs()) == 0 })
	if n := b.Conns.Load(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
}

func TestFirstConnection(t *testing.T) {
	identity, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	good := startBroker(t, fakebroker.Config{Identity: identity})
	foreign := startBroker(t, fakebroker.Config{Identity: other})
	tests := []struct {
		name   string
		change func(*Config)
		check  func(t *testing.T, err error)
	}{
		{"good", func(*Config) {}, nil},
		{"first address is dead", func(c *Config) { c.Addrs = []string{"127.0.0.1:9", good.Addr()} }, nil},
		{"a name", func(c *Config) { c.Addrs = []string{fmt.Sprintf("localhost:%d", good.Port())} }, nil},
		{"name does not resolve", func(c *Config) { c.Addrs = []string{"nowhere.invalid:5000"} }, func(t *testing.T, err error) {
			wantA[*ConnectError](t, err)
			is(t, err, ErrRetryable)
		}},
		{"nobody there", func(c *Config) { c.Addrs = []string{"127.0.0.1:9"} }, func(t *testing.T, err error) { wantA[*ConnectError](t, err) }},
		{"certificate of somebody else", func(c *Config) { c.Addrs = []string{foreign.Addr()} }, func(t *testing.T, err error) { wantA[*ConnectError](t, err) }},
		{"certificate for another name", func(c *Config) { c.ServerName = "other" }, func(t *testing.T, err error) { wantA[*ConnectError](t, err) }},
		{"wrong token", func(c *Config) { c.Token = "wrong" }, func(t *testing.T, err error) {
			if e := as[*Error](t, err); e.Code.String() != "unauthenticated" {
				t.Errorf("got %+v, want unauthenticated", e)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := configFor(good)
			cfg.DialTimeout, cfg.DialStagger = time.Second, 200*time.Millisecond
			tt.change(&cfg)
			c, err := Dial(testContext(t), cfg)
			if tt.check != nil {
				tt.check(t, err)
				return
			}
			if err != nil {
				t.Fatalf("dial: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}
