package placement

import (
	"fmt"
	"slices"
	"time"

	"felix.dev/felix/broker/catalog"
)

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// reporter is what a test and a property have in common.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a state that commands are applied to.
type world struct {
	t     reporter
	state *catalog.State
	down  map[string]bool
	made  int
}

func newWorld(t reporter, settings catalog.Settings, zones ...string) *world {
	t.Helper()
	w := &world{t: t, state: catalog.New(), down: map[string]bool{}}
	for i, zone := range zones {
		if i == 0 {
			w.do(catalog.FoundCluster{Cluster: "c", Settings: settings, Founder: broker(i, zone)})
			continue
		}
		w.join(i, zone)
	}
	return w
}

func node(i int) string { return fmt.Sprintf("n%d", i+1) }

func broker(i int, zone string) catalog.Broker {
	return catalog.Broker{NodeID: node(i), Instance: fmt.Sprintf("i%d", i+1), Peer: "x:1", Zone: zone}
}

func (w *world) do(cmd catalog.Command) catalog.Result {
	w.t.Helper()
	next, r := w.state.Apply(w.state.Index()+1, cmd, epoch)
	if r.Err != nil {
		w.t.Fatalf("%T: %v", cmd, r.Err)
	}
	w.state = next
	return r
}

func (w *world) join(i int, zone string) { w.do(catalog.RegisterBroker{Broker: broker(i, zone)}) }

func (w *world) drain(i int) { w.do(catalog.SetDraining{Node: node(i), Draining: true}) }

func (w *world) view() View { return View{State: w.state, Down: w.down} }

// follow puts a plan into the state, and finishes the moves.
func (w *world) follow(c Changes) {
	w.t.Helper()
	w.begin(c)
	for _, m := range c.Moves {
		w.do(catalog.FinishMove{MoveShard: m})
	}
}

// begin puts a plan into the state.
func (w *world) begin(c Changes) {
	w.t.Helper()
	if len(c.Targets) > 0 {
		w.do(catalog.SetTargets{Targets: c.Targets})
	}
	for _, m := range c.Cancels {
		w.do(catalog.CancelMove{MoveShard: m})
	}
	for _, m := range c.Moves {
		w.do(catalog.BeginMove{MoveShard: m})
	}
}

// settle plans until nothing changes; the first plan has to be enough.
func (w *world) settle() Changes {
	w.t.Helper()
	c := Plan(w.view())
	w.follow(c)
	if again := Plan(w.view()); !again.Empty() {
		w.t.Fatalf("a plan that is followed is not the end:\nfirst %+v\nthen  %+v\nstate %+v", c, again, w.state.Groups())
	}
	return c
}

func (w *world) create(durability catalog.Durability, shards uint32) catalog.Entry {
	w.t.Helper()
	w.made++
	spec := catalog.StreamSpec{
		Name:   catalog.Name{Tenant: "t", Namespace: "n", Stream: fmt.Sprintf("s%d", w.made)},
		Shards: shards, Durability: durability,
	}
	r := w.do(catalog.CreateStream{Spec: spec, Incarnation: fmt.Sprintf("%032x", w.made), Places: Shards(w.view(), spec, 0)})
	return *r.Entry
}

// replicas counts the groups of streams that each broker shall hold, and leaders
// those that it should lead, the metadata group included.
func (w *world) counts() (replicas, leaders map[string]int) {
	replicas, leaders = map[string]int{}, map[string]int{}
	for _, b := range w.state.Brokers() {
		if !b.Draining {
			replicas[b.NodeID], leaders[b.NodeID] = 0, 0
		}
	}
	for _, g := range w.state.Groups() {
		leaders[g.Target[0]]++
		if g.ID == catalog.MetadataGroup {
			continue
		}
		for _, n := range g.Target {
			replicas[n]++
		}
	}
	return replicas, leaders
}

// spread is the difference between who has most and who has least.
func spread(m map[string]int) int {
	lo, hi := 1<<30, 0
	for _, n := range m {
		lo, hi = min(lo, n), max(hi, n)
	}
	return max(0, hi-lo)
}

// moved counts the replicas of groups of streams that are new in a plan.
func moved(before []catalog.Group, c Changes) (n int, to []string) {
	for _, target := range c.Targets {
		for _, g := range before {
			if g.ID != target.ID || g.ID == catalog.MetadataGroup {
				continue
			}
			for _, x := range target.Nodes {
				if !slices.Contains(g.Target, x) {
					n++
					to = append(to, x)
				}
			}
		}
	}
	return n, to
}
