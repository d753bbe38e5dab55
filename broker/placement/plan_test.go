package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"felix.dev/felix/broker/catalog"
)

// check is what holds of every plan that was followed.
func check(w *world) {
	w.t.Helper()
	stay := 0
	zones := map[string]int{} // brokers that stay, by zone
	byNode := map[string]catalog.Broker{}
	for _, b := range w.state.Brokers() {
		byNode[b.NodeID] = b
		if !b.Draining {
			stay++
			zones[b.Zone]++
		}
	}
	for _, g := range w.state.Groups() {
		wanted := w.state.Settings().Replicas
		if g.ID == catalog.MetadataGroup {
			wanted = 5
		}
		held := map[string]int{}
		for i, n := range g.Target {
			b, ok := byNode[n]
			if !ok || slices.Contains(g.Target[:i], n) {
				w.t.Fatalf("group %d: %v: a broker twice, or unknown", g.ID, g.Target)
			}
			if b.Draining && stay > 0 {
				w.t.Fatalf("group %d: %v: %s is draining", g.ID, g.Target, n)
			}
			held[b.Zone]++
		}
		if stay == 0 {
			continue
		}
		want := min(wanted, stay)
		if want == 4 || want == 6 {
			want--
		}
		if len(g.Target) != want {
			w.t.Fatalf("group %d: %v: want %d of %d brokers", g.ID, g.Target, want, stay)
		}
		for a, n := range held {
			for z, has := range zones {
				if n >= held[z]+2 && held[z] < has {
					w.t.Fatalf("group %d: %v: %d in zone %q, %d of %d in %q", g.ID, g.Target, n, a, held[z], has, z)
				}
			}
		}
	}
	for _, e := range w.state.List() {
		for i, p := range e.Places {
			if stay > 0 && p.Owner != "" && byNode[p.Owner].Draining {
				w.t.Fatalf("%s shard %d stays on %s", e.Spec.Name, i, p.Owner)
			}
		}
	}
}

func TestPlanOfSizes(t *testing.T) {
	for _, tc := range []struct{ brokers, replicas, voters int }{
		{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 3, 3}, {5, 3, 5}, {7, 3, 5},
	} {
		t.Run(fmt.Sprint(tc.brokers), func(t *testing.T) {
			w := newWorld(t, catalog.Settings{}, make([]string, tc.brokers)...)
			w.settle()
			check(w)
			for _, g := range w.state.Groups() {
				want := tc.replicas
				if g.ID == catalog.MetadataGroup {
					want = tc.voters
				}
				if len(g.Target) != want {
					t.Errorf("group %d: %v", g.ID, g.Target)
				}
			}
			replicas, leaders := w.counts()
			if spread(replicas) > 1 || spread(leaders) > 1 {
				t.Errorf("uneven: replicas %v, leaders %v", replicas, leaders)
			}
		})
	}
}

func TestZones(t *testing.T) {
	for _, tc := range []struct {
		name  string
		zones []string
	}{
		{"three zones", []string{"a", "a", "b", "b", "c", "c"}},
		{"two zones", []string{"a", "a", "b", "b"}},
		{"one broker in a zone", []string{"a", "b", "b", "b", "b"}},
		{"more zones than replicas", []string{"a", "b", "c", "d", "e"}},
		{"one zone that has no name", []string{"", "", "a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, catalog.Settings{}, tc.zones...)
			w.settle()
			check(w)
			if _, leaders := w.counts(); spread(leaders) > 1 && tc.name != "one broker in a zone" {
				t.Errorf("leaders %v", leaders)
			}
		})
	}
}

// A broker that joins takes its share and nothing else moves.
func TestJoinMovesOnlyToTheNewBroker(t *testing.T) {
	for n := 3; n < 9; n++ {
		w := newWorld(t, catalog.Settings{}, make([]string, n)...)
		w.settle()
		w.join(n, "")
		before := w.state.Groups()
		c := w.settle()
		count, to := moved(before, c)
		if share := 24 / (n + 1); count != share {
			t.Errorf("%d brokers: %d replicas moved, want %d", n+1, count, share)
		}
		for _, x := range to {
			if x != node(n) {
				t.Errorf("%d brokers: a replica moved to %s", n+1, x)
			}
		}
	}
}

func TestDrain(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, make([]string, 5)...)
	w.settle()
	for range 5 {
		w.create(catalog.Durable, 3)
		w.create(catalog.Memory, 1)
	}
	before := w.state.Groups()
	held, _ := w.counts()
	w.drain(1)
	c := w.settle()
	check(w)
	if count, _ := moved(before, c); count != held[node(1)] {
		t.Errorf("%d replicas moved, it held %d", count, held[node(1)])
	}
	if h := w.state.Holdings(node(1)); len(h.Groups) > 0 || h.Shards > 0 {
		t.Errorf("still holds %+v", h)
	}
	if load := ownerLoad(w.state); load[node(1)] != 0 || load[node(0)] != 5 {
		t.Errorf("owners: %v", load)
	}
	w.do(catalog.RemoveBroker{Node: node(1)})
	if c := w.settle(); !c.Empty() {
		t.Errorf("its removal moved %+v", c)
	}
}

func TestDrainOfAll(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, "", "", "")
	w.settle()
	w.create(catalog.Durable, 2)
	for i := range 3 {
		w.drain(i)
	}
	if c := Plan(w.view()); len(c.Moves) > 0 || len(c.Targets) > 0 {
		t.Errorf("nowhere to go, and still %+v", c)
	}
}

// A broker that is down keeps what it has, and gets nothing. However long it is away,
// and whoever was away to look, nobody is expired: a plan knows no time. // B89
func TestDown(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, make([]string, 5)...)
	w.settle()
	w.down[node(2)] = true
	if c := w.settle(); !c.Empty() {
		t.Errorf("moved %+v", c)
	}
	w.drain(0)
	before := w.state.Groups()
	_, to := moved(before, w.settle())
	if slices.Contains(to, node(2)) {
		t.Errorf("moved to %v", to)
	}
	for _, p := range w.create(catalog.Durable, 8).Places {
		if p.Owner == node(2) || p.Owner == node(0) {
			t.Errorf("owner %s", p.Owner)
		}
	}
}

// Whatever happens to a cluster, its plans hold what they promise.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := []string{"", "a", "b", "c"}[:rapid.IntRange(1, 4).Draw(t, "zones")]
		settings := catalog.Settings{
			Groups: rapid.Uint32Range(1, 12).Draw(t, "groups"), Replicas: rapid.SampledFrom([]int{1, 2, 3, 4, 5}).Draw(t, "replicas"),
		}
		w := newWorld(t, settings, rapid.SampledFrom(zones).Draw(t, "zone"))
		next := 1
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			nodes := w.state.Brokers()
			some := func() string { return rapid.SampledFrom(nodes).Draw(t, "node").NodeID }
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				w.join(next, rapid.SampledFrom(zones).Draw(t, "zone"))
				next++
			case 3:
				n := some()
				b, _ := w.state.Broker(n)
				w.do(catalog.SetDraining{Node: n, Draining: !b.Draining})
			case 4:
				w.create(rapid.SampledFrom([]catalog.Durability{catalog.Memory, catalog.Durable, catalog.Quorum}).Draw(t, "durability"),
					rapid.Uint32Range(1, 5).Draw(t, "shards"))
			case 5:
				n := some()
				w.down[n] = !w.down[n]
			case 6:
				n := some()
				if h := w.state.Holdings(n); len(h.Groups) == 0 && h.Shards == 0 {
					w.do(catalog.RemoveBroker{Node: n})
				}
			}
			if rapid.Bool().Draw(t, "plan") {
				w.settle()
			}
		}
		clear(w.down)
		w.settle()
		check(w)
		replicas, leaders := w.counts()
		apart := 2 // who leads the metadata group may have nobody to give another lead to
		if settings.Replicas >= 3 && int(settings.Groups) >= len(replicas) && len(replicas) > 2 {
			apart = 1
		}
		if len(zones) == 1 && len(replicas) > 0 && (spread(replicas) > 1 || spread(leaders) > apart) {
			t.Fatalf("uneven: replicas %v, leaders %v", replicas, leaders)
		}
	})
}

// The same view gives the same plan, whatever order maps have.
func TestPlanIsDeterministic(t *testing.T) {
	w := newWorld(t, catalog.Settings{}, "a", "b", "b", "c", "c", "c", "a")
	for range 20 {
		w.create(catalog.Durable, 2)
	}
	w.drain(0)
	first := fmt.Sprint(Plan(w.view()))
	for range 50 {
		if again := fmt.Sprint(Plan(w.view())); again != first {
			t.Fatalf("%s\nand\n%s", first, again)
		}
	}
}
