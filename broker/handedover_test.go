package broker

import (
	"context"
	"fmt"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wire"
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

// A broker that a durable shard comes back to may still have records of its own that it
// had acknowledged to nobody, at offsets that were others' since: what comes is not put
// behind them.
func TestMovedOntoWhatWasLeft(t *testing.T) {
	c := newTestCluster(t)
	brokers := []*memberBroker{c.add("a").start(), c.add("b").start()}
	c.settled(2)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testWait)
	defer cancel()
	if _, _, err := brokers[0].broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named("s"), Durability: "Durable"}, ""); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := brokers[0].client().Publish(ctx, streamOf("s"), client.Message{Payload: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	e := &brokers[0].broker.member.cluster.State().List()[0]
	owner, to := brokers[0], brokers[1]
	if e.Places[0].Owner == to.node {
		owner, to = to, owner
	}
	cfg, err := to.broker.member.streams.opener.logConfig(e, 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.FS, cfg.Fsync = vfs.OS, seglog.FsyncManual
	left, _, err := seglog.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	region := wire.AppendRecord(nil, []byte("never acknowledged"))
	for i := range uint64(2) {
		frame := append(wire.BeginOffsetFrame(nil, i, 1, len(region)), region...)
		if err := left.Append([]seglog.Record{{Kind: seglog.KindEvents, Base: i, Count: 1, TimeMicros: 1, Frame: frame}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	move := catalog.MoveShard{Name: e.Spec.Name, Incarnation: e.Incarnation, Epoch: e.Places[0].Epoch, To: to.node}
	if r, err := owner.broker.member.cluster.Propose(ctx, catalog.BeginMove{MoveShard: move}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	k := keyOf(e, 0)
	eventually(t, "the shard is served where it was moved to", func() bool { return to.broker.member.where.Lookup(k).Local != nil })
	sub, err := to.client().Subscribe(ctx, streamOf("s"), client.SubscribeConfig{Start: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	for i := range 3 {
		if got, err := sub.Next(ctx); err != nil || string(got.Payload) != fmt.Sprint(i) || got.Offset != uint64(i) {
			t.Errorf("record %d: %q at %d, %v", i, got.Payload, got.Offset, err)
		}
	}
}
