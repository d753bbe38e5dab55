package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRegister(t *testing.T) {
	c := found(t, 2)
	moved := member(2)
	moved.Peer, moved.Client, moved.Version = "elsewhere:1", "elsewhere:2", "1.1"
	moved.Draining = true // is not its own to say
	c.do(RegisterBroker{Broker: moved})
	got, _ := c.state.Broker("n2")
	moved.Draining, moved.Joined = false, epoch
	if diff := cmp.Diff(moved, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.do(SetDraining{Node: "n2", Draining: true})
	moved.Peer = "again:1"
	c.do(RegisterBroker{Broker: moved})
	if got, _ := c.state.Broker("n2"); !got.Draining || got.Peer != "again:1" {
		t.Errorf("got %+v", got)
	}
	c.do(SetDraining{Node: "n2"})
	if got, _ := c.state.Broker("n2"); got.Draining {
		t.Errorf("got %+v", got)
	}
}

func TestRegisterRefuses(t *testing.T) {
	c := found(t, 1)
	for what, change := range map[string]func(*Broker){
		"node":         func(b *Broker) { b.NodeID = "N 1" },
		"no node":      func(b *Broker) { b.NodeID = "" },
		"instance":     func(b *Broker) { b.Instance = "a.b" },
		"no address":   func(b *Broker) { b.Peer = "" },
		"long address": func(b *Broker) { b.Client = strings.Repeat("x", 300) },
		"long zone":    func(b *Broker) { b.Zone = strings.Repeat("x", 300) },
	} {
		b := member(2)
		change(&b)
		if _, ok := errors.AsType[*BrokerError](c.try(RegisterBroker{Broker: b}).Err); !ok {
			t.Errorf("%s: accepted", what)
		}
	}
	c.refused(SetDraining{Node: "n9", Draining: true}, ErrNoBroker)
	c.refused(RemoveBroker{Node: "n9"}, ErrNoBroker)
	for i := 2; i <= MaxBrokers; i++ {
		c.do(RegisterBroker{Broker: member(i)})
	}
	c.refused(RegisterBroker{Broker: member(MaxBrokers + 1)}, ErrFull)
	c.do(RegisterBroker{Broker: member(MaxBrokers)})
}

// B87: a volume that was wiped makes another instance. It is let in only in place
// of the one that is meant, which then may not come back; what only the old one
// had is not taken for an empty shard.
func TestReplacedInstance(t *testing.T) {
	c := found(t, 2)
	durable, memory := c.create("d", Durable, on(2), on(1)), c.create("m", Memory, on(1), on(2))
	wiped := member(2)
	wiped.Instance = "fresh"
	c.refused(RegisterBroker{Broker: wiped}, ErrNodeTaken)
	c.refused(RegisterBroker{Broker: wiped, Replaces: "i1"}, ErrNodeTaken)
	c.do(SetDraining{Node: "n2", Draining: true})
	c.do(RegisterBroker{Broker: wiped, Replaces: "i2"})
	if got, _ := c.state.Broker("n2"); got.Instance != "fresh" || !got.Draining {
		t.Errorf("got %+v", got)
	}
	if !c.state.WasRemoved("n2", "i2") || c.state.WasRemoved("n2", "fresh") {
		t.Error("the wrong one was removed")
	}
	c.refused(RegisterBroker{Broker: member(2)}, ErrRemoved)
	c.refused(RegisterBroker{Broker: member(2), Replaces: "fresh"}, ErrRemoved)
	d, _ := c.state.Get(durable.Spec.Name)
	if diff := cmp.Diff(durable.Places, d.Places); diff != "" {
		t.Errorf("a durable shard follows (-before +now):\n%s", diff)
	}
	m, _ := c.state.Get(memory.Spec.Name)
	if diff := cmp.Diff([]ShardPlace{memory.Places[0], {Owner: "n2", Instance: "fresh", Epoch: 2}}, m.Places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	encoded(t, c.state)
}

func TestRemove(t *testing.T) {
	c := found(t, 4)
	c.do(SetTargets{Targets: []GroupTarget{{ID: 1, Nodes: []string{"n2", "n1"}}}})
	c.do(ReportGroup{ID: 2, Term: 3, Leader: "n1", Members: []Member{{"n1", "i1", true}, {"n3", "i3", false}}})
	c.do(ReportGroup{ID: MetadataGroup, Term: 3, Leader: "n1", Members: []Member{{"n1", "i1", true}, {"n4", "i4", false}}})
	e := c.create("s", Durable, on(4), on(1))
	holds := func(i int, groups []uint32, shards int) {
		t.Helper()
		err := c.try(RemoveBroker{Node: node(i)}).Err
		h, ok := errors.AsType[*HoldsError](err)
		if !ok || !cmp.Equal(h.Groups, groups) || h.Shards != shards {
			t.Errorf("n%d: got %v", i, err)
		}
	}
	holds(1, []uint32{0, 1, 2}, 1)
	holds(2, []uint32{1}, 0)
	holds(3, []uint32{2}, 0)
	holds(4, nil, 1) // that it learns the catalog does not count

	move := MoveShard{Name: name("s"), Incarnation: e.Incarnation, Epoch: 1, To: "n2"}
	c.do(BeginMove{move})
	holds(2, []uint32{1}, 1)
	c.do(FinishMove{move})
	c.do(RemoveBroker{Node: "n4", Instance: "i4"})
	if _, ok := c.state.Broker("n4"); ok || !c.state.WasRemoved("n4", "i4") {
		t.Error("it is still there")
	}
	// B76: it returns, and is told; with another volume it is welcome, and a late
	// retry of the removal does not throw that one out.
	c.refused(RegisterBroker{Broker: member(4)}, ErrRemoved)
	back := member(4)
	back.Instance = "fresh"
	c.do(RegisterBroker{Broker: back})
	c.do(RemoveBroker{Node: "n4", Instance: "i4"})
	if _, ok := c.state.Broker("n4"); !ok {
		t.Error("the new instance is gone")
	}
	c.refused(RemoveBroker{Node: "n4", Instance: "other"}, ErrNoBroker)
	encoded(t, c.state)
}

func TestRemoveByForce(t *testing.T) {
	c := found(t, 3)
	e := c.create("s", Durable, on(2), on(1), on(1))
	for _, shard := range []uint32{1, 2} {
		c.do(BeginMove{MoveShard{Name: name("s"), Incarnation: e.Incarnation, Shard: shard, Epoch: 1, To: "n2"}})
	}
	c.do(SetTargets{Targets: []GroupTarget{{ID: 1, Nodes: []string{"n2"}}}})
	c.refused(RemoveBroker{Node: "n2", Force: true}, nil) // groups have to move first
	c.do(SetTargets{Targets: []GroupTarget{{ID: 1, Nodes: []string{"n1"}}}})
	c.do(RemoveBroker{Node: "n2", Force: true})
	got, _ := c.state.Get(name("s"))
	want := []ShardPlace{{Owner: "n2", Instance: "i2", Epoch: 1}, {Owner: "n1", Instance: "i1", Epoch: 1}, {Owner: "n1", Instance: "i1", Epoch: 1}}
	if diff := cmp.Diff(want, got.Places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	encoded(t, c.state)
}

func TestRemovedAreBounded(t *testing.T) {
	c := found(t, 1)
	for i := range maxRemoved + 5 {
		b := member(2)
		b.Instance = fmt.Sprintf("x%d", i)
		c.do(RegisterBroker{Broker: b, Replaces: fmt.Sprintf("x%d", i-1)})
	}
	if n := len(c.state.removed); n != maxRemoved || c.state.WasRemoved("n2", "x3") || !c.state.WasRemoved("n2", "x4") {
		t.Errorf("%d are remembered", n)
	}
}
