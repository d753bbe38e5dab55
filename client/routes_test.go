package client

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

// A stream that gets more shards: the publisher notices by itself.
func TestRoutingIsRefreshed(t *testing.T) {
	var shards, asked atomic.Uint32
	shards.Store(2)
	b := startBroker(t, fakebroker.Config{Shards: 8, Hooks: fakebroker.Hooks{
		Request: func(m wire.Message) wire.Message {
			if s, ok := m.(*wire.StreamShards); ok {
				asked.Add(1)
				return &wire.StreamShardsView{Shards: shards.Load(), RequestID: s.RequestID}
			}
			return nil
		},
	}})
	c := dial(t, configFor(b))
	ctx := testContext(t)
	p := newPublisher(t, c, demo, PublisherConfig{})
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := p.Publish(ctx, Message{Key: fmt.Appendf(nil, "k%d", i), Payload: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	publish(0, 100)
	publish(0, 100)
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	shards.Store(8)
	outdate := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		old := *p.routing
		old.asked = time.Now().Add(-time.Hour)
		p.routing = &old
		c.routes.mu.Lock()
		defer c.routes.mu.Unlock()
		c.routes.byName[demo] = &old
	}
	outdate()
	publish(0, 1)
	until(t, "the routing to be refreshed", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.routing.Count == 8
	})
	publish(0, 100)
	closePublisher(t, p)
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times, want twice", n)
	}
}
