package placement

import (
	"testing"

	"felix.dev/felix/broker/catalog"
)

func owner(t *testing.T, w *world, e *catalog.Entry) catalog.ShardPlace {
	t.Helper()
	now, err := w.state.Get(e.Spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	return now.Places[0]
}

// A move whose destination has to go as well is turned round.
func TestDestinationThatIsDrained(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, "", "", "")
	w.settle()
	e := w.create(catalog.Durable, 1)
	w.drain(0)
	c := Plan(w.view())
	w.begin(c)
	if len(c.Moves) != 1 || c.Moves[0].To != "n2" || owner(t, w, &e).Moving != "n2" {
		t.Fatalf("got %+v", c)
	}
	if again := Plan(w.view()); !again.Empty() {
		t.Fatalf("under way, and planned again: %+v", again)
	}
	w.drain(1)
	c = w.settle()
	if len(c.Cancels) != 1 || len(c.Moves) != 1 || c.Moves[0].To != "n3" {
		t.Errorf("got %+v", c)
	}
	if p := owner(t, w, &e); p.Owner != "n3" || p.Epoch != 3 {
		t.Errorf("got %+v", p)
	}
}

// What is lost with a volume is not moved: a durable shard would be empty on its
// new owner, and its offsets would be used again. A memory shard is not lost.
func TestOwnerWithoutItsVolume(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, "", "")
	w.settle()
	var durable, memory catalog.Entry
	for range 2 {
		durable, memory = w.create(catalog.Durable, 1), w.create(catalog.Memory, 1)
	}
	lost := owner(t, w, &durable)
	b, _ := w.state.Broker(lost.Owner)
	wiped := b
	wiped.Instance = "other"
	w.do(catalog.RegisterBroker{Broker: wiped, Replaces: b.Instance})
	w.do(catalog.SetDraining{Node: b.NodeID, Draining: true})
	c := Plan(w.view())
	for _, m := range c.Moves {
		if m.Name == durable.Spec.Name {
			t.Errorf("moved %+v", m)
		}
	}
	w.follow(c)
	if p := owner(t, w, &memory); p.Owner == b.NodeID {
		t.Errorf("a memory shard stays: %+v", p)
	}
	w.do(catalog.RemoveBroker{Node: b.NodeID, Force: true})
	if c := Plan(w.view()); len(c.Moves) != 0 {
		t.Errorf("moved %+v", c)
	}
}

func TestDeletingIsNotMoved(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, "", "")
	w.settle()
	e := w.create(catalog.Durable, 1)
	w.do(catalog.SealStream{Name: e.Spec.Name, Incarnation: e.Incarnation})
	w.drain(0)
	if c := Plan(w.view()); len(c.Moves) != 0 {
		t.Errorf("moved %+v", c)
	}
}
