package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"felix.dev/felix/broker/catalog"
)

// mover notes what it is to bring, and fails the first time.
type mover struct {
	mu    sync.Mutex
	asked []string
}

func (m *mover) move(_ context.Context, s ShardMove) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, fmt.Sprintf("%s/%d from %s at %d", s.Entry.Spec.Name.Stream, s.Shard, s.From, s.Epoch))
	if len(m.asked) == 1 {
		return errors.New("no route")
	}
	return nil
}

// Shards with one owner leave a broker that is drained: durable ones are brought by
// their new owner, which tries again, those in memory just go.
func TestShardsLeaveABrokerThatIsDrained(t *testing.T) {
	w := newTown(t)
	movers := map[string]*mover{"a": {}, "b": {}}
	moving := func(node string) func(*Config) { return func(c *Config) { c.MoveShard = movers[node].move } }
	a := w.house("a").must(founds, moving("a"))
	b := w.house("b").must(joins(a), moving("b"))
	w.whole(a, b)
	name := func(s string) catalog.Name { return catalog.Name{Tenant: "t", Namespace: "n", Stream: s} }
	for i, d := range []catalog.Durability{catalog.Durable, catalog.Memory} {
		r, err := b.cluster.Propose(t.Context(), catalog.CreateStream{
			Spec:        catalog.StreamSpec{Name: name(string(d)), Shards: 2, Durability: d},
			Incarnation: strings.Repeat(fmt.Sprint(i), 32), Places: []catalog.ShardPlace{{Owner: "a"}, {Owner: "b"}},
		})
		if err != nil || r.Err != nil || !r.Created {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	if err := b.cluster.SetDraining(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.SetDraining(t.Context(), "b", true); !errors.Is(err, ErrRefused) {
		t.Errorf("the last one is drained, too: %v", err)
	}
	w.until("nothing is left", func() error {
		for _, s := range b.cluster.Status(t.Context()).Brokers {
			if s.NodeID == "a" && s.Holds.Shards+s.Holds.Replicas != 0 {
				return errAt(a, "holds %+v", s.Holds)
			}
		}
		return nil
	})
	for _, d := range []string{"Durable", "Memory"} {
		e, err := b.cluster.State().Get(name(d))
		if err != nil {
			t.Fatal(err)
		}
		if p := e.Places[0]; p.Owner != "b" || p.Epoch != 2 || p.Moving != "" || e.Places[1].Epoch != 1 {
			t.Errorf("%s: got %+v", d, e.Places)
		}
	}
	movers["b"].mu.Lock()
	defer movers["b"].mu.Unlock()
	if got := strings.Join(movers["b"].asked, ", "); got != "Durable/0 from a at 1, Durable/0 from a at 1" {
		t.Errorf("asked for %s", got)
	}
}
