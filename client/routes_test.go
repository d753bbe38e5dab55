package client

import (
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

// With several shards a batch holds records of one shard whatever their keys; with one shard no key is sent.
func TestKeys(t *testing.T) {
	tests := []struct {
		name    string
		cfg     fakebroker.Config
		pub     PublisherConfig
		keyed   bool // frames have keys
		oneKey  bool // and hold records of one key
		batches int64
	}{
		{"one shard", fakebroker.Config{Shards: 1}, PublisherConfig{}, false, false, 7},
		{"four shards", fakebroker.Config{Shards: 4}, PublisherConfig{}, true, false, 20},
		{"four shards jump hash", fakebroker.Config{Shards: 4, Routing: wire.RoutingJump}, PublisherConfig{}, true, false, 20},
		{"idempotent", fakebroker.Config{Shards: 4}, PublisherConfig{Idempotent: true}, true, false, 20},
		{"shards not served", fakebroker.Config{Shards: 4, Features: wire.FeatureErrorCodes}, PublisherConfig{}, true, true, 400},
	}
	const records, keys = 400, 20
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			b := startBroker(t, func() fakebroker.Config {
				cfg := tt.cfg
				cfg.Hooks.Publish = func(p *fakebroker.Publish) bool {
					mu.Lock()
					defer mu.Unlock()
					if p.Keyed != tt.keyed {
						t.Errorf("frame with a key: %v", p.Keyed)
					}
					for _, r := range p.Records {
						key, _, _ := strings.Cut(string(r), "/")
						if s := wire.ShardOf([]byte(key), true, cfg.Shards, cfg.Routing); s != p.Shard {
							t.Errorf("record %s is in a batch for shard %d, its key is of shard %d", r, p.Shard, s)
						}
						if tt.oneKey && key != string(p.Key) {
							t.Errorf("record %s is in a batch of key %s", r, p.Key)
						}
					}
					return false
				}
				return cfg
			}())
			c := dial(t, configFor(b))
			tt.pub.Linger = 200 * time.Millisecond
			p := newPublisher(t, c, demo, tt.pub)
			var pendings []*Pending
			for i := range records {
				key := fmt.Sprintf("k%d", i%keys)
				pending, err := p.Publish(testContext(t), Message{Key: []byte(key), Payload: fmt.Appendf(nil, "%s/%d", key, i)})
				if err != nil {
					t.Fatal(err)
				}
				pendings = append(pendings, pending)
			}
			closePublisher(t, p)
			for i, pending := range pendings {
				key := fmt.Sprintf("k%d", i%keys)
				k := demoKey
				k.Shard = wire.ShardOf([]byte(key), true, tt.cfg.Shards, tt.cfg.Routing)
				r, err := pending.Wait(testContext(t))
				if err != nil {
					t.Fatal(err)
				}
				if got := b.Store().Records(k)[r.Offset]; got != fmt.Sprintf("%s/%d", key, i) {
					t.Fatalf("record %d: offset %d of shard %d holds %s", i, r.Offset, k.Shard, got)
				}
			}
			if n := b.Batches.Load(); n > tt.batches {
				t.Errorf("%d frames, want at most %d", n, tt.batches)
			}
		})
	}
}

func TestUnkeyedGoesToShardZero(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Shards: 4})
	c := dial(t, configFor(b))
	ctx := testContext(t)
	for _, m := range []Message{
		{Payload: []byte("none")},
		{Payload: []byte("empty"), Keyed: true}, // an empty key is a key
	} {
		if _, err := c.Publish(ctx, demo, m); err != nil {
			t.Fatal(err)
		}
	}
	key := demoKey
	if got := b.Store().Records(key); !cmp.Equal(got, []string{"none"}) {
		t.Errorf("shard 0 holds %v", got)
	}
	key.Shard = wire.ShardOf(nil, true, 4, wire.RoutingModulo)
	if got := b.Store().Records(key); key.Shard == 0 || !cmp.Equal(got, []string{"empty"}) {
		t.Errorf("shard %d holds %v", key.Shard, got)
	}
}
