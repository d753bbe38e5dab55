package client

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

func TestClusterRequests(t *testing.T) {
	b := startBroker(t, fakebroker.Config{
		Shards: 3, Routing: wire.RoutingJump,
		Features: wire.ClusterFeatures,
		Hooks: fakebroker.Hooks{Request: func(m wire.Message) wire.Message {
			switch m := m.(type) {
			case *wire.Topology:
				return &wire.TopologyView{Brokers: []wire.Broker{{NodeID: "b1", Addr: "10.0.0.1:5000"}, {NodeID: "b2", Addr: "b2.felix:5000"}}}
			case *wire.ShardOwners:
				if m.TenantID != "t1" || m.Namespace != "default" || m.Name != "demo" || m.Kind != wire.OwnersOfStream {
					return &wire.ErrorMsg{Message: "wrong request", Code: "invalid_request"}
				}
				return &wire.ShardOwnersView{RequestID: m.RequestID, Owners: []wire.ShardOwner{
					{Shard: 0, NodeID: "b1", Addr: "10.0.0.1:5000", Generation: 4},
					{Shard: 1, Generation: 2, Unavailable: "not_assigned"},
				}}
			}
			return nil
		}},
	})
	c := dial(t, configFor(b))
	ctx := testContext(t)
	shards, err := c.Shards(ctx, demo)
	if diff := cmp.Diff(Shards{Count: 3, Routing: wire.RoutingJump}, shards); diff != "" || err != nil {
		t.Errorf("shards: error %v (-want +got):\n%s", err, diff)
	}
	brokers, err := c.Topology(ctx)
	if diff := cmp.Diff([]Broker{{"b1", "10.0.0.1:5000"}, {"b2", "b2.felix:5000"}}, brokers); diff != "" || err != nil {
		t.Errorf("topology: error %v (-want +got):\n%s", err, diff)
	}
	owners, err := c.ShardOwners(ctx, demo)
	if diff := cmp.Diff([]ShardOwner{
		{Shard: 0, NodeID: "b1", Addr: "10.0.0.1:5000", Generation: 4},
		{Shard: 1, Generation: 2, Unavailable: "not_assigned"},
	}, owners); diff != "" || err != nil {
		t.Errorf("owners: error %v (-want +got):\n%s", err, diff)
	}
	// What was learned is tried when the configured broker is lost.
	until(t, "the topology to be learned", func() bool {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		return cmp.Equal(c.pool.book.addrs(), []string{b.Addr(), "10.0.0.1:5000", "b2.felix:5000"})
	})
}

func TestRequestsOfAStandAloneBroker(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Request: func(m wire.Message) wire.Message {
		if m, ok := m.(*wire.StreamShards); ok {
			return &wire.StreamShardsView{RequestID: m.RequestID}
		}
		return nil
	}}})
	c := dial(t, configFor(b))
	ctx := testContext(t)
	_, err := c.Topology(ctx)
	wantA[*UnsupportedError](t, err)
	_, err = c.ShardOwners(ctx, demo)
	wantA[*UnsupportedError](t, err)
	_, err = c.Shards(ctx, demo)
	if e := as[*Error](t, err); e.Code != wire.CodeNotFound {
		t.Errorf("a stream without shards: got %+v, want not_found", e)
	}
	for _, s := range []Stream{{}, {Namespace: "n"}, {Namespace: "n", Name: string(make([]byte, 1<<16))}} {
		if _, err := c.Shards(ctx, s); err == nil {
			t.Errorf("stream %.20q was taken", s)
		}
	}
}

// A broker that does not answer a request costs its time and no more.
func TestRequestTimesOut(t *testing.T) {
	block := make(chan struct{})
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Request: func(wire.Message) wire.Message {
		<-block
		return nil
	}}})
	defer close(block)
	cfg := configFor(b)
	cfg.RequestTimeout = 100 * time.Millisecond
	c := dial(t, cfg)
	_, err := c.Shards(testContext(t), demo)
	is(t, err, ErrRetryable)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Shards(ctx, demo)
	is(t, err, context.DeadlineExceeded)
	if _, err := c.Publish(testContext(t), demo, Message{}); err != nil {
		t.Errorf("publish: %v", err)
	}
}

// A broker from before negotiation: what does not need it works.
func TestBrokerWithoutNegotiation(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{
		Auth:      func(*wire.Auth) wire.Message { return &wire.OK{} },
		Subscribe: func(*wire.Subscribe) wire.Message { return nil },
		Events: func(s *fakebroker.Sub) bool {
			s.Write(wire.AppendEvents(nil, &wire.Events{HasOffsets: true, Records: wire.RecordsOf([]byte("x"))}))
			<-s.Gone()
			return true
		},
	}})
	c := dial(t, configFor(b))
	_, err := c.Subscribe(testContext(t), demo, SubscribeConfig{Start: Earliest()})
	wantA[*UnsupportedError](t, err)
	sub := subscribe(t, c, demo, SubscribeConfig{})
	if _, err := sub.Next(testContext(t)); err != nil {
		t.Errorf("next: %v", err)
	}
	p := newPublisher(t, c, demo, PublisherConfig{Unacked: true})
	publishAll(t, p, 0, 3)
	closePublisher(t, p)
	if n := len(b.Store().Records(demoKey)); n != 3 {
		t.Errorf("%d records are stored, want 3", n)
	}
}
