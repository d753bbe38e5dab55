package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

// publishAll publishes payloads and returns the handles.
func publishAll(t testing.TB, p *Publisher, from, to int) []*Pending {
	t.Helper()
	var pendings []*Pending
	for i := from; i < to; i++ {
		pending, err := p.Publish(testContext(t), Message{Payload: fmt.Appendf(nil, "r%d", i)})
		if err != nil {
			t.Fatalf("publish %d: %v", i, err)
		}
		pendings = append(pendings, pending)
	}
	return pendings
}

func closePublisher(t testing.TB, p *Publisher) {
	t.Helper()
	if err := p.Close(testContext(t)); err != nil {
		t.Errorf("close publisher: %v", err)
	}
}

func plain(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("r%d", i))
	}
	return out
}

func TestPublisherKeepsTheOrder(t *testing.T) {
	for _, cfg := range []PublisherConfig{
		{},
		{Linger: time.Millisecond},
		{MaxBatchRecords: 1},
		{MaxBatchBytes: 20},
		{MaxInflightBytes: 50},
		{MaxInflight: 3},
		{MaxInflight: 3, Linger: time.Minute},
		{AtLeastOnce: true},
		{Idempotent: true},
		{Idempotent: true, MaxBatchRecords: 1},
		{Unacked: true},
		{Unacked: true, MaxInflightBytes: 50},
	} {
		t.Run(strings.NewReplacer(" ", "_", ":", "=").Replace(fmt.Sprintf("%+v", cfg)), func(t *testing.T) {
			b := startBroker(t, fakebroker.Config{})
			c := dial(t, configFor(b))
			p := newPublisher(t, c, demo, cfg)
			const n = 1000
			pendings := publishAll(t, p, 0, n)
			closePublisher(t, p)
			for i, pending := range pendings {
				select {
				case <-pending.Done():
				default:
					t.Fatalf("record %d is not settled after Close", i)
				}
				r, err := pending.Wait(t.Context())
				if want := (Receipt{Offset: uint64(i), HasOffset: true}); err != nil || !cfg.Unacked && r != want {
					t.Fatalf("record %d: got %+v, error %v; want %+v", i, r, err, want)
				}
			}
			if diff := cmp.Diff(plain(n), b.Store().Records(demoKey)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if b.Batches.Load() == n && cfg.MaxBatchRecords == 0 && cfg.MaxBatchBytes == 0 && cfg.MaxInflight == 0 && cfg.MaxInflightBytes == 0 {
				t.Error("nothing was batched")
			}
			if _, err := p.Publish(t.Context(), Message{}); !errors.Is(err, ErrClosed) {
				t.Errorf("publish after Close: got %v, want ErrClosed", err)
			}
		})
	}
}

// The message may be reused as soon as Publish returns.
func TestPublishCopies(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Shards: 4})
	c := dial(t, configFor(b))
	p := newPublisher(t, c, demo, PublisherConfig{Linger: 50 * time.Millisecond})
	m := Message{Key: []byte("k"), Payload: []byte("x")}
	if _, err := p.Publish(testContext(t), m); err != nil {
		t.Fatal(err)
	}
	m.Key[0], m.Payload[0] = 'y', 'y'
	closePublisher(t, p)
	key := demoKey
	key.Shard = wire.ShardOf([]byte("k"), true, 4, wire.RoutingModulo)
	if got := b.Store().Records(key); !cmp.Equal(got, []string{"x"}) {
		t.Errorf("shard %d holds %v, want x", key.Shard, got)
	}
}

// B38: acks in any order reach the caller that they are for.
func TestAcksInAnyOrder(t *testing.T) {
	const n = 6
	var mu sync.Mutex
	var held []*fakebroker.Publish
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
		mu.Lock()
		defer mu.Unlock()
		held = append(held, p)
		if len(held) == n {
			for _, i := range []int{3, 1, 5, 0, 2, 4} {
				held[i].Accept()
			}
		}
		return true
	}}})
	c := dial(t, configFor(b))
	p := newPublisher(t, c, demo, PublisherConfig{MaxBatchRecords: 1})
	pendings := publishAll(t, p, 0, n)
	closePublisher(t, p)
	stored := b.Store().Records(demoKey)
	for i, pending := range pendings {
		r, err := pending.Wait(testContext(t))
		if err != nil || stored[r.Offset] != fmt.Sprintf("r%d", i) {
			t.Errorf("record %d: got offset %d, which holds %s, error %v", i, r.Offset, stored[r.Offset], err)
		}
	}
}

// B39: a refused publish fails itself and nothing else, on its stream and on others of the connection.
func TestRefusedPublishFailsAlone(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
		switch {
		case string(p.Stream) == "missing":
			p.Fail(wire.CodeNotFound, wire.RetryAfter, "", 5)
		case bytes.HasPrefix(p.Records[0], []byte("r3")):
			p.Fail(wire.CodeOverloaded, wire.RetryAfter, "publish_queue_full", 70)
		default:
			return false
		}
		return true
	}}})
	c := dial(t, configFor(b))
	ctx := testContext(t)
	_, err := c.Publish(ctx, Stream{"default", "missing"}, Message{Payload: []byte("x")})
	if e := as[*Error](t, err); e.Code != wire.CodeNotFound {
		t.Errorf("got %+v, want not_found", e)
	}
	p := newPublisher(t, c, demo, PublisherConfig{MaxBatchRecords: 1})
	for i, pending := range publishAll(t, p, 0, 6) {
		_, err := pending.Wait(ctx)
		if i != 3 {
			if err != nil {
				t.Errorf("record %d: %v", i, err)
			}
			continue
		}
		is(t, err, ErrRetryable)
		want := &Error{
			Code: wire.CodeOverloaded, Retry: wire.RetryAfter, Message: "failed by the test",
			Reason: "publish_queue_full", RetryAfter: 70 * time.Millisecond,
		}
		if diff := cmp.Diff(want, as[*Error](t, err)); diff != "" {
			t.Errorf("error of record 3 (-want +got):\n%s", diff)
		}
	}
	// Flush tells of it once.
	if err := p.Flush(ctx); !errors.Is(err, ErrRetryable) {
		t.Errorf("flush: got %v, want the error of record 3", err)
	}
	closePublisher(t, p)
}

func TestWindowMakesPublishWait(t *testing.T) {
	release := make(chan struct{})
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(*fakebroker.Publish) bool {
		<-release
		return false
	}}})
	c := dial(t, configFor(b))
	p := newPublisher(t, c, demo, PublisherConfig{MaxInflight: 2})
	publishAll(t, p, 0, 2)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err := p.Publish(ctx, Message{Payload: []byte("x")})
	is(t, err, context.DeadlineExceeded)
	close(release)
	publishAll(t, p, 2, 5)
	closePublisher(t, p)
	if diff := cmp.Diff(plain(5), b.Store().Records(demoKey)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// A broker that never answers: nothing waits for ever, and what comes too late is no harm.
func TestNoAnswer(t *testing.T) {
	for _, cfg := range []PublisherConfig{{}, {Idempotent: true}, {AtLeastOnce: true}} {
		t.Run(fmt.Sprintf("idempotent %v at least once %v", cfg.Idempotent, cfg.AtLeastOnce), func(t *testing.T) {
			first := make(chan *fakebroker.Publish, 1)
			var seen atomic.Bool
			b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
				if seen.Swap(true) {
					return false
				}
				first <- p
				return true
			}}})
			ccfg := configFor(b)
			ccfg.PublishTimeout = 200 * time.Millisecond
			c := dial(t, ccfg)
			p := newPublisher(t, c, demo, cfg)
			_, err := publishAll(t, p, 0, 1)[0].Wait(testContext(t))
			is(t, err, ErrOutcomeUnknown)
			is(t, p.Flush(testContext(t)), ErrOutcomeUnknown)
			late := <-first
			late.Accept()
			if _, err := publishAll(t, p, 1, 2)[0].Wait(testContext(t)); err != nil {
				t.Errorf("the next publish: %v", err)
			}
			closePublisher(t, p)
		})
	}
}

// B63: publishes that were on a connection when it died fail as unknown, soon; later ones go to the new connection.
func TestConnectionLostWithPublishInFlight(t *testing.T) {
	got := make(chan struct{}, 10)
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(*fakebroker.Publish) bool {
		got <- struct{}{}
		return true
	}}})
	c := dial(t, fast(configFor(b)))
	p := newPublisher(t, c, demo, PublisherConfig{})
	pending := publishAll(t, p, 0, 1)[0]
	<-got
	began := time.Now()
	b.Kill()
	_, err := pending.Wait(testContext(t))
	is(t, err, ErrOutcomeUnknown)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v with an idle timeout of 600 ms", took)
	}
	// While nobody is there a publish fails too, and is known not to be stored.
	_, err = publishAll(t, p, 1, 2)[0].Wait(testContext(t))
	is(t, err, ErrRetryable)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("got %v, which was never sent", err)
	}
	again := restartBroker(t, b, fakebroker.Config{})
	until(t, "publishing to work again", func() bool {
		pending, err := p.Publish(testContext(t), Message{Payload: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = pending.Wait(testContext(t))
		return err == nil
	})
	if got := again.Store().Records(demoKey); !cmp.Equal(got, []string{"x"}) {
		t.Errorf("stored %v, want x", got)
	}
	if err := p.Close(testContext(t)); err == nil {
		t.Error("Close does not tell of the failures")
	}
}

func TestAtLeastOnce(t *testing.T) {
	// once says whether a record is seen for the first time.
	once := func() func(p *fakebroker.Publish, record string) bool {
		var mu sync.Mutex
		seen := map[string]bool{}
		return func(p *fakebroker.Publish, record string) bool {
			mu.Lock()
			defer mu.Unlock()
			if string(p.Records[0]) != record || seen[record] {
				return false
			}
			seen[record] = true
			return true
		}
	}
	tests := []struct {
		name    string
		fault   func(first func(p *fakebroker.Publish, record string) bool, p *fakebroker.Publish) bool
		repeats int
	}{
		{"answer lost with the connection", func(first func(*fakebroker.Publish, string) bool, p *fakebroker.Publish) bool {
			if !first(p, "r2") {
				return false
			}
			p.Store()
			p.CloseConn()
			return true
		}, 20},
		{"refused for now", func(first func(*fakebroker.Publish, string) bool, p *fakebroker.Publish) bool {
			if !first(p, "r3") {
				return false
			}
			p.Fail(wire.CodeOverloaded, wire.RetryAfter, "", 1)
			return true
		}, 0},
		{"outcome unknown", func(first func(*fakebroker.Publish, string) bool, p *fakebroker.Publish) bool {
			if !first(p, "r4") {
				return false
			}
			p.Store()
			p.Fail(wire.CodeQuorumTimeout, wire.RetryOutcomeUnknown, "", 0)
			return true
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := once()
			b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
				return tt.fault(first, p)
			}}})
			c := dial(t, configFor(b))
			p := newPublisher(t, c, demo, PublisherConfig{AtLeastOnce: true, MaxBatchRecords: 1})
			for i, pending := range publishAll(t, p, 0, 20) {
				if _, err := pending.Wait(testContext(t)); err != nil {
					t.Errorf("record %d: %v", i, err)
				}
			}
			closePublisher(t, p)
			stored := b.Store().Records(demoKey)
			different := map[string]bool{}
			for _, r := range stored {
				different[r] = true
			}
			if len(different) != 20 || len(stored) > 20+tt.repeats {
				t.Errorf("%d records are stored, %d different ones; want 20 and at most %d repeats", len(stored), len(different), tt.repeats)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	_, err := c.Publish(testContext(t), demo, Message{Payload: make([]byte, wire.MaxPayload)})
	if e := as[*Error](t, err); e.Retry != wire.RetryFatal {
		t.Errorf("got %+v, want it to be fatal", e)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16) // 5 MiB, above the window
	if _, err := c.Publish(testContext(t), demo, Message{Payload: large}); err != nil {
		t.Errorf("5 MiB: %v", err)
	}
	if got := b.Store().Records(demoKey); len(got) != 1 || got[0] != string(large) {
		t.Error("the record was changed on its way")
	}
}

func TestUnsupportedByTheBroker(t *testing.T) {
	tests := []struct {
		name    string
		flags   wire.Flags
		message Message
		pub     PublisherConfig
	}{
		{"acked", wire.BaseFlags, Message{}, PublisherConfig{}},
		{"keyed", wire.BaseFlags | wire.FlagPublishAcked | wire.FlagAck, Message{Keyed: true}, PublisherConfig{}},
		{"idempotent", wire.StandaloneFlags, Message{}, PublisherConfig{Idempotent: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := startBroker(t, fakebroker.Config{Flags: tt.flags, Shards: 2})
			c := dial(t, configFor(b))
			p := newPublisher(t, c, demo, tt.pub)
			pending, err := p.Publish(testContext(t), tt.message)
			if err != nil {
				t.Fatal(err)
			}
			_, err = pending.Wait(testContext(t))
			wantA[*UnsupportedError](t, err)
			if err := p.Close(testContext(t)); err == nil {
				t.Error("Close does not tell of it")
			}
		})
	}
}

// What the broker says when it ends a stream is what the caller is told.
func TestBrokerEndsThePublishStream(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
		p.Send(&wire.ErrorMsg{Message: "going away", Code: "draining", Retry: "retry"})
		return true
	}}})
	c := dial(t, configFor(b))
	_, err := c.Publish(testContext(t), demo, Message{Payload: []byte("x")})
	is(t, err, ErrOutcomeUnknown)
	if !strings.Contains(err.Error(), "going away") {
		t.Errorf("got %v, want it to say what the broker said", err)
	}
}

func TestAnswerThatNobodyWaitsFor(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
		p.RequestID += 1000
		p.Accept()
		return true
	}}})
	c := dial(t, configFor(b))
	_, err := c.Publish(testContext(t), demo, Message{Payload: []byte("x")})
	is(t, err, ErrOutcomeUnknown)
	wantA[*ProtocolError](t, err)
}

func TestCloseWithNobodyThere(t *testing.T) {
	got := make(chan struct{}, 1)
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(*fakebroker.Publish) bool {
		got <- struct{}{}
		return true
	}}})
	c := dial(t, configFor(b))
	p := newPublisher(t, c, demo, PublisherConfig{})
	pending := publishAll(t, p, 0, 1)[0]
	<-got
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	is(t, p.Close(ctx), context.DeadlineExceeded)
	_, err := pending.Wait(testContext(t))
	is(t, err, ErrOutcomeUnknown)
	is(t, err, ErrClosed)
}
