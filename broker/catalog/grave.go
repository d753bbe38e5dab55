package catalog

import "slices"

// grave is what is left of a deleted name: where the next stream of the name has
// to start.
type grave struct {
	name   Name
	floors []uint64 // by shard
	floor  uint64   // of all other shards
}

// exhume takes a name's grave out of the state, or returns what a name without
// one has.
func (t *transition) exhume(n Name) grave {
	i := slices.IndexFunc(t.next.graves, func(g grave) bool { return g.name == n })
	if i < 0 {
		return grave{name: n, floor: t.next.floor}
	}
	g := t.next.graves[i]
	t.next.graves = slices.Concat(t.next.graves[:i], t.next.graves[i+1:])
	return g
}

// dig adds a grave; the oldest beyond the limit are forgotten into the floor.
func (t *transition) dig(g grave) {
	all := append(slices.Clone(t.next.graves), g)
	for len(all) > t.limits.MaxGraves {
		t.next.floor = max(t.next.floor, all[0].highest())
		all = all[1:]
	}
	t.next.graves = all
}

// highest is beyond everything that the name could have handed out.
func (g *grave) highest() uint64 {
	high := g.floor
	for _, f := range g.floors {
		high = max(high, f)
	}
	return high
}
