package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"felix.dev/felix/client/internal/fakebroker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var demo = Stream{Namespace: "default", Name: "demo"}

var demoKey = fakebroker.ShardKey{Namespace: "default", Stream: "demo"}

// startBroker starts a fake broker that ends with the test.
func startBroker(t testing.TB, cfg fakebroker.Config) *fakebroker.Broker {
	t.Helper()
	b, err := fakebroker.Start(cfg)
	if err != nil {
		t.Fatalf("start broker: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() }) // a test may have closed it
	return b
}

// configFor is a client configuration for brokers that share an identity.
func configFor(brokers ...*fakebroker.Broker) Config {
	cfg := Config{Tenant: "t1", Token: fakebroker.Token, RootCAs: brokers[0].Identity().Roots}
	for _, b := range brokers {
		cfg.Addrs = append(cfg.Addrs, b.Addr())
	}
	if os.Getenv("FELIX_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return cfg
}

// dial connects a client that ends with the test.
func dial(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := Dial(testContext(t), cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return c
}

// testContext bounds a test.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func subscribe(t testing.TB, c *Client, s Stream, cfg SubscribeConfig) *Subscription {
	t.Helper()
	sub, err := c.Subscribe(testContext(t), s, cfg)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	t.Cleanup(func() {
		if err := sub.Close(); err != nil {
			t.Errorf("close subscription: %v", err)
		}
	})
	return sub
}

func newPublisher(t testing.TB, c *Client, s Stream, cfg PublisherConfig) *Publisher {
	t.Helper()
	p, err := c.NewPublisher(s, cfg)
	if err != nil {
		t.Fatalf("new publisher: %v", err)
	}
	return p
}

// next reads n events and returns them as "offset:payload".
func next(t testing.TB, sub *Subscription, n int) []string {
	t.Helper()
	var got []string
	ctx := testContext(t)
	for range n {
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("next, after %v: %v", got, err)
		}
		got = append(got, fmt.Sprintf("%d:%s", e.Offset, e.Payload))
	}
	return got
}

// until waits for a condition that another goroutine or process brings about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// is fails the test if err does not match target.
func is(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
}

// as fails the test if err is no T.
func as[T error](t testing.TB, err error) T {
	t.Helper()
	e, ok := errors.AsType[T](err)
	if !ok {
		t.Fatalf("got error %v of type %T, want a %T", err, err, e)
	}
	return e
}

// wantA fails the test if err is no T.
func wantA[T error](t testing.TB, err error) {
	t.Helper()
	if !isA[T](err) {
		t.Fatalf("got error %v of type %T", err, err)
	}
}

func payloads(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, "r%d", i)
	}
	return out
}

// listed is what next returns for payloads(n)[from:to].
func listed(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%d:r%d", i, i))
	}
	return out
}
