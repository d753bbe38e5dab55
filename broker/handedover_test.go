package broker

import (
	"context"
	"fmt"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/client"
)

// A broker that has handed a durable shard to another one takes nothing more for it, also
// after it was restarted: the other one may become the owner at any moment, and would not
// have it. When the move is called off it goes on.
func TestHandedOverStaysSo(t *testing.T) {
	c := newTestCluster(t)
	brokers := []*memberBroker{c.add("a").start(), c.add("b").start(), c.add("z").start()}
	c.settled(3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testWait)
	defer cancel()
	if _, _, err := brokers[0].broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named("s"), Durability: "Durable"}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := brokers[0].client().Publish(ctx, streamOf("s"), client.Message{Payload: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	entry := func(b *memberBroker) *catalog.Entry {
		for _, e := range b.broker.member.cluster.State().List() {
			return &e
		}
		t.Fatal("no stream")
		return nil
	}
	var owner, to *memberBroker
	e := entry(brokers[0])
	for _, b := range brokers {
		if b.node == e.Places[0].Owner {
			owner = b
		} else {
			to = b
		}
	}
	to.stop() // so that it does not come to take the shard
	move := catalog.MoveShard{Name: e.Spec.Name, Incarnation: e.Incarnation, Epoch: e.Places[0].Epoch, To: to.node}
	propose := func(cmd catalog.Command) {
		t.Helper()
		eventually(t, fmt.Sprintf("%T", cmd), func() bool {
			r, err := owner.broker.member.cluster.Propose(ctx, cmd)
			return err == nil && r.Err == nil
		})
	}
	propose(catalog.BeginMove{MoveShard: move})
	k := keyOf(e, 0)
	m := owner.broker.member
	if err := m.streams.handOver(ctx, m.where.ownedShard(k), to.node); err != nil {
		t.Fatal(err)
	}
	owner.stop()
	owner.start()
	eventually(t, "the shard is open again", func() bool { return owner.broker.member.where.ownedShard(k) != nil })
	if entry(owner).Places[0].Moving == to.node { // the cluster may have called it off meanwhile
		if at := owner.broker.member.where.Lookup(k); at.Local != nil {
			t.Errorf("it serves a shard that it has handed over: %+v", at)
		}
		o := owner.broker.member.where.ownedShard(k)
		if o.Mark() != 1 || o.segments.Next() != 1 {
			t.Errorf("what is to be copied ends at %d, %d", o.Mark(), o.segments.Next())
		}
	} else {
		t.Log("the move was called off")
	}
	propose(catalog.CancelMove{MoveShard: move})
	eventually(t, "it is served again", func() bool { return owner.broker.member.where.Lookup(k).Local != nil })
	if got, err := owner.client().Publish(ctx, streamOf("s"), client.Message{Payload: []byte("two")}); err != nil || got.Offset != 1 {
		t.Errorf("publish: %+v, %v", got, err)
	}
}
