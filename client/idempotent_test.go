package client

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

// faults runs a script over the publishes of a broker, by the number of the frame.
func faults(f func(n int64, p *fakebroker.Publish) bool) fakebroker.Hooks {
	var n atomic.Int64
	return fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool { return f(n.Add(1), p) }}
}

// B31, B33: whatever happens to frames, answers and connections, each record is stored once and in order.
func TestIdempotentExactlyOnce(t *testing.T) {
	lost := func(p *fakebroker.Publish) { p.Store(); p.CloseConn() }
	tests := []struct {
		name string
		f    func(n int64, p *fakebroker.Publish) bool
	}{
		{"answer lost", func(n int64, p *fakebroker.Publish) bool {
			if n == 7 {
				lost(p)
			}
			return n == 7
		}},
		{"frame lost", func(n int64, p *fakebroker.Publish) bool {
			if n == 7 {
				p.CloseConn()
			}
			return n == 7
		}},
		{"refused for now", func(n int64, p *fakebroker.Publish) bool {
			if n == 7 {
				p.Fail(wire.CodeOverloaded, wire.RetryAfter, "publish_queue_full", 1)
			}
			return n == 7
		}},
		{"outcome unknown, and stored", func(n int64, p *fakebroker.Publish) bool {
			if n == 7 {
				p.Store()
				p.Fail(wire.CodeQuorumTimeout, wire.RetryOutcomeUnknown, "", 0)
			}
			return n == 7
		}},
		{"outcome unknown, and not stored", func(n int64, p *fakebroker.Publish) bool {
			if n == 7 {
				p.Fail(wire.CodeLeadershipLost, wire.RetryOutcomeUnknown, "", 0)
			}
			return n == 7
		}},
		{"everything at random", func() func(int64, *fakebroker.Publish) bool {
			var mu sync.Mutex
			rnd := rand.New(rand.NewPCG(1, 2))
			return func(n int64, p *fakebroker.Publish) bool {
				mu.Lock()
				x := rnd.IntN(150)
				mu.Unlock()
				switch x {
				case 0:
					lost(p)
				case 1:
					p.CloseConn()
				case 2:
					p.Fail(wire.CodeShardUnavailable, wire.RetryNow, "moving", 0)
				case 3:
					p.Store()
					p.Fail(wire.CodeUnacknowledged, wire.RetryOutcomeUnknown, "", 0)
				default:
					return false
				}
				return true
			}
		}()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := startBroker(t, fakebroker.Config{Hooks: faults(tt.f)})
			c := dial(t, configFor(b))
			p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true, MaxBatchRecords: 3})
			const n = 300
			pendings := publishAll(t, p, 0, n)
			closePublisher(t, p)
			if diff := cmp.Diff(plain(n), b.Store().Records(demoKey)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			for i, pending := range pendings {
				r, err := pending.Wait(testContext(t))
				if want := (Receipt{Offset: uint64(i), HasOffset: true}); err != nil || r != want {
					t.Fatalf("record %d: got %+v, error %v; want %+v", i, r, err, want)
				}
			}
		})
	}
}

// B31: brokers are restarted while an idempotent publisher goes on.
func TestIdempotentOverRestarts(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, fast(configFor(b)))
	p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true, MaxBatchRecords: 5})
	const rounds, each = 4, 100
	for round := range rounds {
		publishAll(t, p, round*each, (round+1)*each)
		if round == rounds-1 {
			break
		}
		if round%2 == 0 {
			b.Kill()
		} else if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = restartBroker(t, b, fakebroker.Config{})
	}
	closePublisher(t, p)
	if diff := cmp.Diff(plain(rounds*each), b.Store().Records(demoKey)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// B39 for numbered batches: one that fails for good fails alone, although its number blocks those behind it.
func TestIdempotentFatalFailsAlone(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: faults(func(_ int64, p *fakebroker.Publish) bool {
		bad := string(p.Records[0]) == "r5" || string(p.Records[0]) == "r6" || string(p.Records[0]) == "r20"
		if bad {
			p.Fail(wire.CodeInvalidRequest, wire.RetryFatal, "", 0)
		}
		return bad
	})})
	c := dial(t, configFor(b))
	p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true, MaxBatchRecords: 1})
	var want []string
	for i, pending := range publishAll(t, p, 0, 40) {
		_, err := pending.Wait(testContext(t))
		if i == 5 || i == 6 || i == 20 {
			if e := as[*Error](t, err); e.Code != wire.CodeInvalidRequest {
				t.Errorf("record %d: got %+v, want invalid_request", i, e)
			}
			continue
		}
		if err != nil {
			t.Errorf("record %d: %v", i, err)
		}
		want = append(want, fmt.Sprintf("r%d", i))
	}
	if diff := cmp.Diff(want, b.Store().Records(demoKey)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	wantA[*Error](t, p.Close(testContext(t)))
}

func TestIdempotentRefusals(t *testing.T) {
	tests := []struct {
		name   string
		reason wire.RefusedReason
	}{
		{"reused", wire.RefusedReason{Kind: wire.RefusedReused}},
		{"expired", wire.RefusedReason{Kind: wire.RefusedExpired}},
		{"gap below everything that is left", wire.RefusedReason{Kind: wire.RefusedGap, Expected: 1}},
		{"a reason of later", wire.RefusedReason{Kind: "sequence_odd"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := startBroker(t, fakebroker.Config{Hooks: faults(func(n int64, p *fakebroker.Publish) bool {
				if n == 4 {
					p.Send(&wire.PublishRefused{RequestID: p.RequestID, Reason: tt.reason, Message: "by the test"})
				}
				return n == 4
			})})
			c := dial(t, configFor(b))
			p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true})
			for i := range 6 {
				_, err := publishAll(t, p, i, i+1)[0].Wait(testContext(t))
				if i != 3 {
					if err != nil {
						t.Errorf("record %d: %v", i, err)
					}
					continue
				}
				want := &RefusedError{Reason: string(tt.reason.Kind), Expected: tt.reason.Expected, Message: "by the test"}
				if diff := cmp.Diff(want, as[*RefusedError](t, err)); diff != "" {
					t.Errorf("error of record 3 (-want +got):\n%s", diff)
				}
				is(t, err, ErrOutcomeUnknown)
			}
			if diff := cmp.Diff([]string{"r0", "r1", "r2", "r4", "r5"}, b.Store().Records(demoKey)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// A broker that has forgotten the producer cannot have stored what it refuses: the publisher begins anew by itself.
func TestIdempotentProducerForgotten(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true})
	for i := range 3 {
		if _, err := publishAll(t, p, 10*i, 10*(i+1))[9].Wait(testContext(t)); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		b.Store().ForgetProducers()
	}
	closePublisher(t, p)
	if diff := cmp.Diff(plain(30), b.Store().Records(demoKey)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestIdempotentFollowsTheLeader(t *testing.T) {
	identity, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	leader := startBroker(t, fakebroker.Config{Identity: identity})
	other := startBroker(t, fakebroker.Config{Identity: identity, Hooks: faults(func(_ int64, p *fakebroker.Publish) bool {
		p.Send(&wire.PublishRefused{RequestID: p.RequestID, Reason: wire.RefusedReason{
			Kind: wire.RefusedNotLeader, NodeID: "b1", Addr: leader.Addr(),
		}})
		return true
	})})
	c := dial(t, configFor(other))
	p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true})
	publishAll(t, p, 0, 50)
	closePublisher(t, p)
	if diff := cmp.Diff(plain(50), leader.Store().Records(demoKey)); diff != "" {
		t.Errorf("stored by the leader (-want +got):\n%s", diff)
	}
}

// A gap that does not close ends with the time of the publish, not in an endless exchange.
func TestIdempotentGapThatStays(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: faults(func(_ int64, p *fakebroker.Publish) bool {
		if p.Sequence == 1 {
			p.Fail(wire.CodeOverloaded, wire.RetryAfter, "", 0)
			return true
		}
		return false
	})})
	cfg := configFor(b)
	cfg.PublishTimeout = time.Second
	c := dial(t, cfg)
	p := newPublisher(t, c, demo, PublisherConfig{Idempotent: true, MaxBatchRecords: 1})
	pendings := publishAll(t, p, 0, 4)
	if _, err := pendings[0].Wait(testContext(t)); err != nil {
		t.Errorf("record 0: %v", err)
	}
	for i, pending := range pendings[1:] {
		if _, err := pending.Wait(testContext(t)); err == nil {
			t.Errorf("record %d was stored", i+1)
		}
	}
	if n := b.Batches.Load(); n > 100 {
		t.Errorf("%d frames were sent in a second", n)
	}
	if err := p.Close(testContext(t)); err == nil {
		t.Error("Close does not tell of the failures")
	}
}
