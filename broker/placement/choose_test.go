package placement

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/catalog"
)

func TestGroupOf(t *testing.T) {
	name := func(s string) catalog.Name { return catalog.Name{Tenant: "t", Namespace: "n", Stream: s} }
	// It is recorded in the catalog; all the same it should not change by accident.
	for s, want := range map[string]uint32{"orders": 3, "ticks": 1, "": 4} {
		if got := GroupOf(name(s), 0, 8); got != want {
			t.Errorf("%q: group %d, want %d", s, got, want)
		}
	}
	if got := GroupOf(name("x"), 0, 0); got != 0 {
		t.Errorf("a group of none: %d", got)
	}
	// Shards of a stream share as few groups as possible, ...
	for shard := range uint32(16) {
		if got, next := GroupOf(name("s"), shard, 8), GroupOf(name("s"), shard+1, 8); got < 1 || got > 8 || next != got%8+1 {
			t.Errorf("shard %d in group %d, the next one in %d", shard, got, next)
		}
	}
	// ... and streams share all of them.
	count := map[uint32]int{}
	for i := range 8000 {
		count[GroupOf(name(fmt.Sprint("stream-", i)), 0, 8)]++
	}
	for g := uint32(1); g <= 8; g++ {
		if count[g] < 850 || count[g] > 1150 {
			t.Errorf("group %d has %d of 8000", g, count[g])
		}
	}
}

func TestShards(t *testing.T) {
	w := newWorld(t, catalog.Settings{Groups: 4}, "", "", "")
	w.create(catalog.Durable, 1) // n1
	spec := catalog.StreamSpec{Name: catalog.Name{Tenant: "t", Namespace: "n", Stream: "x"}, Shards: 4}
	owners := func(from uint32) (out []string) {
		for _, p := range Shards(w.view(), spec, from) {
			out = append(out, p.Owner)
		}
		return out
	}
	if diff := cmp.Diff([]string{"n2", "n3", "n1", "n2"}, owners(0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"n2"}, owners(3)); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	w.drain(1)
	w.down[node(2)] = true
	if diff := cmp.Diff([]string{"n1", "n1", "n1", "n1"}, owners(0)); diff != "" {
		t.Errorf("one left (-want +got):\n%s", diff)
	}
	w.down[node(0)] = true // then one that is down, never one that drains
	if diff := cmp.Diff([]string{"n3", "n1", "n3", "n1"}, owners(0)); diff != "" {
		t.Errorf("none left (-want +got):\n%s", diff)
	}
	spec.Durability = catalog.Quorum
	first := GroupOf(spec.Name, 0, 4)
	if got := Shards(w.view(), spec, 0); len(got) != 4 || got[0] != (catalog.ShardPlace{Group: first}) || got[1].Group != first%4+1 {
		t.Errorf("quorum: %+v", got)
	}
	for _, from := range []uint32{4, 5} {
		if got := Shards(w.view(), spec, from); got != nil {
			t.Errorf("from %d: %+v", from, got)
		}
	}
	spec.Shards = 1 << 30
	if got := Shards(w.view(), spec, 0); got != nil {
		t.Errorf("too many: %d places", len(got))
	}
	spec.Shards, spec.Durability = 1, catalog.Memory
	if got := Shards(View{State: catalog.New()}, spec, 0); got != nil {
		t.Errorf("no brokers: %+v", got)
	}
}
