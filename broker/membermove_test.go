package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// holds is how much of a node's the cluster still counts on.
func (c *testCluster) holds(on *memberBroker, node string) string {
	st := on.broker.member.cluster.Status(c.t.Context())
	for _, b := range st.Brokers {
		if b.NodeID == node && b.Holds.Replicas+b.Holds.Leads+b.Holds.Shards > 0 {
			return fmt.Sprintf("%+v", b.Holds)
		}
	}
	return ""
}

// A drained broker holds nothing, whatever it held: replicas and leaderships of groups,
// durable shards with their records, memory shards.
func TestDrainedBrokerHoldsNothing(t *testing.T) {
	c := newTestCluster(t)
	a := c.add("a").start()
	b := c.add("b").start()
	z := c.add("z").start()
	c.settled(3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testWait)
	defer cancel()
	through := a.client()
	const shards, records = 6, 40
	for _, durability := range []string{"Quorum", "Durable", "Memory"} {
		spec := admin.StreamSpec{Name: named("s-" + durability), Durability: durability, Shards: shards}
		if _, _, err := a.broker.Admin().CreateStream(ctx, spec, ""); err != nil {
			t.Fatal(err)
		}
	}
	offsets := map[string]uint64{}
	publish := func(durability string, n int) {
		for i := range n {
			key := fmt.Append(nil, i%17)
			got, err := through.Publish(ctx, streamOf("s-"+durability), client.Message{Payload: []byte(durability), Key: key, Keyed: true})
			if err != nil {
				t.Fatalf("publish %d to %s: %v", i, durability, err)
			}
			offsets[durability] = max(offsets[durability], got.Offset)
		}
	}
	for _, durability := range []string{"Quorum", "Durable", "Memory"} {
		publish(durability, records)
	}
	if c.holds(a, "b") == "" {
		t.Fatal("the broker to drain holds nothing to begin with")
	}
	if err := a.broker.member.cluster.SetDraining(ctx, "b", true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is on the drained broker", func() bool { return c.holds(a, "b") == "" })
	logs := filepath.Join(b.cfg.DataDir, streamsName, "*", "*", "s-Quorum", "*", "*", "*.log")
	eventually(t, "nothing of the groups is on the drained broker's disk", func() bool {
		left, err := filepath.Glob(logs)
		return err == nil && len(left) == 0
	})
	b.stop()
	for _, durability := range []string{"Quorum", "Durable"} {
		n := 0
		for shard := range uint32(shards) {
			n += c.count(ctx, z, "s-"+durability, shard)
		}
		if n != records {
			t.Errorf("%s: %d records of %d are there", durability, n, records)
		}
		publish(durability, 20)
	}
	publish("Memory", 20)
	if err := a.broker.member.cluster.Remove(ctx, "b", false); err != nil {
		t.Error(err)
	}
	delete(c.brokers, "b")
}

// count is how many records of a shard there are.
func (c *testCluster) count(ctx context.Context, through *memberBroker, stream string, shard uint32) (n int) {
	c.t.Helper()
	sub, err := through.client().Subscribe(ctx, streamOf(stream), client.SubscribeConfig{Start: client.Earliest(), Shard: shard})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	for sub.Position() < sub.LiveOffset() {
		if _, err := sub.Next(ctx); err != nil {
			c.t.Fatal(err)
		}
		n++
	}
	return n
}

// A broker that was alone founds a cluster with the streams that it has.
func TestSingleBrokerGrowsIntoACluster(t *testing.T) {
	c := newTestCluster(t)
	a := c.add("a")
	member := a.cfg.Cluster
	a.cfg.Cluster = nil
	a.start()
	ctx, cancel := context.WithTimeout(t.Context(), 2*testWait)
	defer cancel()
	if _, _, err := a.broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named("old"), Durability: "Durable"}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client().Publish(ctx, streamOf("old"), client.Message{Payload: []byte("before")}); err != nil {
		t.Fatal(err)
	}
	a.stop()
	a.cfg.Cluster = member
	a.start()
	b := c.add("b").start()
	z := c.add("z").start()
	c.settled(3)
	got, err := b.client().Publish(ctx, streamOf("old"), client.Message{Payload: []byte("after")})
	if err != nil || got.Offset != 1 {
		t.Fatalf("publish through a broker that joined: %+v, %v", got, err)
	}
	if n := c.count(ctx, z, "old", 0); n != 2 {
		t.Errorf("%d records of 2 are there", n)
	}
}

// A broker that is stopped hands its leaderships over; its readers and publishers go
// on elsewhere, and nothing is lost or repeated. // B31
func TestStoppedLeadersAreFollowed(t *testing.T) {
	c := newTestCluster(t)
	brokers := []*memberBroker{c.add("a").start(), c.add("b").start(), c.add("z").start()}
	c.settled(3)
	ctx, cancel := context.WithTimeout(t.Context(), 4*testWait)
	defer cancel()
	if _, _, err := brokers[0].broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named("roll"), Durability: "Quorum"}, ""); err != nil {
		t.Fatal(err)
	}
	through := c.client(brokers...)
	sub, err := through.Subscribe(ctx, streamOf("roll"), client.SubscribeConfig{Start: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	p, err := through.NewPublisher(streamOf("roll"), client.PublisherConfig{Idempotent: true})
	if err != nil {
		t.Fatal(err)
	}
	roll := make(chan struct{})
	go func() {
		defer close(roll)
		for _, b := range brokers {
			b.stop()
			b.start()
			c.settled(3)
		}
	}()
	published := make(chan error, 1)
	go func() { published <- publishUntil(ctx, p, roll) }()
	for i := 0; ; i++ {
		e, err := sub.Next(ctx)
		if err == nil && string(e.Payload) == theEnd {
			t.Logf("%d records while each broker was restarted", i)
			break
		}
		if err != nil || string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("record %d: %q at %d, %v", i, e.Payload, e.Offset, err)
		}
	}
	if err := <-published; err != nil {
		t.Error(err)
	}
}

const theEnd = "the end"

// publishUntil publishes numbers until done is closed, and then the end.
func publishUntil(ctx context.Context, p *client.Publisher, done <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-done:
			if _, err := p.Publish(ctx, client.Message{Payload: []byte(theEnd)}); err != nil {
				return err
			}
			return p.Close(ctx)
		default:
		}
		if _, err := p.Publish(ctx, client.Message{Payload: fmt.Append(nil, i)}); err != nil {
			return fmt.Errorf("publish %d: %w", i, err)
		}
	}
}

// client knows several brokers.
func (c *testCluster) client(through ...*memberBroker) *client.Client {
	c.t.Helper()
	var addrs []string
	for _, b := range through {
		addrs = append(addrs, b.cfg.Listen)
	}
	k, err := client.Dial(c.t.Context(), client.Config{
		Addrs: addrs, Tenant: devTenant, Token: c.token, CAFile: c.served.CA,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = k.Close() })
	return k
}
