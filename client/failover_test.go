package client

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

// cluster starts brokers with one identity and one log between them.
func cluster(t *testing.T, hooks ...fakebroker.Hooks) ([]*fakebroker.Broker, *fakebroker.Store) {
	t.Helper()
	identity, err := fakebroker.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	store := fakebroker.NewStore()
	brokers := make([]*fakebroker.Broker, len(hooks))
	for i, h := range hooks {
		brokers[i] = startBroker(t, fakebroker.Config{Identity: identity, Store: store, Hooks: h})
	}
	return brokers, store
}

// refusing fails every publish.
func refusing(code wire.Code) fakebroker.Hooks {
	return fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
		p.Fail(code, code.DefaultRetry(), "not_ready", 0)
		return true
	}}
}

// A broker that is cut off from the others refuses what it is given and says why. Its clients move over: those that send again
// notice nothing of it, the others after the first refusal.
func TestPublishersMoveOver(t *testing.T) {
	for _, code := range []wire.Code{wire.CodeShardUnavailable, wire.CodeNotLeader, wire.CodeDraining, wire.CodeQuorumTimeout} {
		for name, cfg := range map[string]PublisherConfig{
			"plain": {}, "at least once": {AtLeastOnce: true}, "idempotent": {Idempotent: true},
		} {
			t.Run(fmt.Sprint(code, ", ", name), func(t *testing.T) {
				brokers, store := cluster(t, refusing(code), fakebroker.Hooks{})
				c := dial(t, configFor(brokers...))
				p := newPublisher(t, c, demo, cfg)
				const n = 20
				stored := 0
				for i := range n {
					pending, err := p.Publish(testContext(t), Message{Payload: fmt.Appendf(nil, "r%d", i)})
					if err != nil {
						t.Fatal(err)
					}
					_, err = pending.Wait(testContext(t))
					refused, _ := errors.AsType[*Error](err)
					switch {
					case err == nil:
						stored++
					case i > 0 || cfg.resends():
						t.Errorf("record %d: %v", i, err)
					case refused == nil || refused.Code != code:
						t.Errorf("record %d: got %v, want %v", i, err, code)
					}
				}
				if err := p.Close(testContext(t)); (err != nil) != (stored < n) {
					t.Errorf("close: %v", err)
				}
				if got := store.Records(demoKey); len(got) != stored || cfg.resends() && !cmp.Equal(got, plain(n)) {
					t.Errorf("%d records were acknowledged, stored are %v", stored, got)
				}
			})
		}
	}
}

// Where no other broker is known there is nowhere to go: the stream stays, and serves as soon as it can.
func TestPublisherStaysWithItsOnlyBroker(t *testing.T) {
	var refused atomic.Int64
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
		if refused.Add(1) > 3 {
			return false
		}
		p.Fail(wire.CodeShardUnavailable, wire.RetryNow, "not_ready", 0)
		return true
	}}})
	c := dial(t, configFor(b))
	auths := b.Auths.Load()
	for i := range 5 {
		_, err := c.Publish(testContext(t), demo, Message{Payload: []byte("x")})
		if (err != nil) != (i < 3) {
			t.Errorf("publish %d: %v", i, err)
		}
	}
	if n := b.Auths.Load() - auths; n > 1 {
		t.Errorf("%d streams were used, want 1", n)
	}
}

// B63: the broker that a client has come in by is killed with publishes in flight. With the default configuration the client
// goes on at another one within 10 s, and one that sends again has lost nothing; an idempotent one has repeated nothing.
func TestPublishersSurviveTheirBroker(t *testing.T) {
	for name, cfg := range map[string]PublisherConfig{
		"at least once": {AtLeastOnce: true, MaxBatchRecords: 1}, "idempotent": {Idempotent: true, MaxBatchRecords: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Int64
			arrived := make(chan struct{})
			brokers, store := cluster(t, fakebroker.Hooks{Publish: func(p *fakebroker.Publish) bool {
				n := seen.Add(1)
				switch {
				case n < 10:
					return false
				case n%2 == 0:
					_, _ = p.Store() // stored, and the answer is lost
				}
				if n == 20 {
					close(arrived)
				}
				return true
			}}, fakebroker.Hooks{})
			c := dial(t, configFor(brokers...))
			p := newPublisher(t, c, demo, cfg)
			const n = 30
			pendings := publishAll(t, p, 0, n)
			<-arrived
			begin := time.Now()
			brokers[0].Kill()
			for i, pending := range pendings {
				if _, err := pending.Wait(testContext(t)); err != nil {
					t.Errorf("record %d: %v", i, err)
				}
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			} else {
				t.Logf("it took %v", took)
			}
			closePublisher(t, p)
			got := store.Records(demoKey)
			if cfg.Idempotent {
				if diff := cmp.Diff(plain(n), got); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				return
			}
			different := map[string]bool{}
			for _, r := range got {
				different[r] = true
			}
			if len(different) != n {
				t.Errorf("%d different records are stored, want %d", len(different), n)
			}
		})
	}
}

// B35, B63: a reader's broker is killed. It is told, and goes on at another broker at the next record.
func TestSubscriptionSurvivesItsBroker(t *testing.T) {
	t.Parallel()
	brokers, store := cluster(t, fakebroker.Hooks{}, fakebroker.Hooks{})
	store.Append(demoKey, payloads(3)...)
	c := dial(t, configFor(brokers...))
	lost, resumed := make(chan error, 1), make(chan Resumed, 1)
	sub := subscribe(t, c, demo, SubscribeConfig{
		Start: Earliest(), OnLost: func(err error) { lost <- err }, OnResumed: func(r Resumed) { resumed <- r },
	})
	next(t, sub, 3)
	begin := time.Now()
	brokers[0].Kill()
	store.Append(demoKey, []byte("r3"))
	if diff := cmp.Diff(listed(3, 4), next(t, sub, 1)); diff != "" {
		t.Errorf("after the kill (-want +got):\n%s", diff)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Logf("it took %v", took)
	}
	if err := <-lost; err == nil {
		t.Error("lost without a reason")
	}
	if r := <-resumed; r.Position != 3 || r.Broker != brokers[1].Addr() {
		t.Errorf("resumed: got %+v, want position 3 at %s", r, brokers[1].Addr())
	}
}

// B19, B35: a broker that has ended a subscription and cannot say who leads is left for another one.
func TestSubscriptionMovesOver(t *testing.T) {
	unavailable := &wire.ErrorMsg{Message: "no leader", Code: "shard_unavailable", Retry: "retry", Detail: &wire.ErrorDetail{Reason: "not_ready"}}
	var out atomic.Bool
	brokers, store := cluster(t, fakebroker.Hooks{
		Events: func(s *fakebroker.Sub) bool {
			s.DeliverTo(0, 3)
			out.Store(true)
			time.Sleep(20 * time.Millisecond) // a reset takes back what was not read yet
			s.Reset()
			return true
		},
		Subscribe: func(*wire.Subscribe) wire.Message {
			if out.Load() {
				return unavailable
			}
			return nil
		},
	}, fakebroker.Hooks{})
	store.Append(demoKey, payloads(5)...)
	c := dial(t, configFor(brokers...))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	if diff := cmp.Diff(listed(0, 5), next(t, sub, 5)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(brokers[1].Subs()) != 1 {
		t.Error("the other broker does not serve the subscription")
	}
	// What is new goes there at once.
	subscribe(t, c, demo, SubscribeConfig{})
	if len(brokers[1].Subs()) != 2 {
		t.Error("a new subscription has gone to the broker that could not serve")
	}
}

// During an election the brokers name the leader that is dead, and nobody. A first subscribe waits it out.
func TestSubscribeDuringElection(t *testing.T) {
	dead, _ := cluster(t, fakebroker.Hooks{})
	var asked atomic.Int64
	election := fakebroker.Hooks{Subscribe: func(*wire.Subscribe) wire.Message {
		switch n := asked.Add(1); {
		case n <= 2:
			return &wire.NotLeader{NodeID: "dead", Addr: dead[0].Addr(), Generation: 1}
		case n <= 7:
			return &wire.ErrorMsg{Message: "no leader", Code: "shard_unavailable", Retry: "retry"}
		}
		return nil
	}}
	brokers, store := cluster(t, election, election)
	store.Append(demoKey, payloads(2)...)
	dead[0].Kill()
	c := dial(t, fast(configFor(brokers...)))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	if diff := cmp.Diff(listed(0, 2), next(t, sub, 2)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// What cannot be served within the time of a request is told.
func TestSubscribeGivesUp(t *testing.T) {
	none := fakebroker.Hooks{Subscribe: func(*wire.Subscribe) wire.Message {
		return &wire.ErrorMsg{Message: "no leader", Code: "shard_unavailable", Retry: "retry"}
	}}
	brokers, _ := cluster(t, none, none)
	cfg := configFor(brokers...)
	cfg.RequestTimeout = 500 * time.Millisecond
	c := dial(t, cfg)
	_, err := c.Subscribe(testContext(t), demo, SubscribeConfig{})
	if e := as[*Error](t, err); e.Code != wire.CodeShardUnavailable {
		t.Errorf("got %+v, want shard_unavailable", e)
	}
}
