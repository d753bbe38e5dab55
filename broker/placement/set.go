package placement

import (
	"cmp"
	"slices"
)

// fit makes a set of replicas one of n brokers, spread over zones as evenly as
// they allow, with as few changes as that takes. load is how much each broker has;
// it is kept up to date.
func (b *brokers) fit(set []string, n int, load map[string]int) []string {
	out := slices.Clone(set)
	for len(out) > n {
		out = b.without(out, b.mostCrowded(out, load), load)
	}
	for len(out) < n {
		node := b.leastCrowded(out, b.up(), load)
		if node == "" {
			node = b.leastCrowded(out, b.nodes, load)
		}
		if node == "" {
			return out
		}
		out = append(out, node)
		load[node]++
	}
	for {
		from := b.mostCrowded(out, load)
		to := b.leastCrowded(out, b.up(), load)
		if from == "" || to == "" || b.inZone(out, b.zone[from]) < b.inZone(out, b.zone[to])+2 {
			return out
		}
		out = append(b.without(out, from, load), to)
		load[to]++
	}
}

func (b *brokers) without(set []string, node string, load map[string]int) []string {
	load[node]--
	return slices.DeleteFunc(slices.Clone(set), func(x string) bool { return x == node })
}

// inZone counts the replicas of a zone.
func (b *brokers) inZone(set []string, zone string) int {
	n := 0
	for _, node := range set {
		if b.zone[node] == zone {
			n++
		}
	}
	return n
}

// mostCrowded is the replica to give up: in the zone with the most, on the broker
// with the most; not the preferred leader, if another one will do.
func (b *brokers) mostCrowded(set []string, load map[string]int) string {
	worst := 0
	for i := range set {
		x, y := set[i], set[worst]
		if cmp.Or(
			cmp.Compare(b.inZone(set, b.zone[x]), b.inZone(set, b.zone[y])),
			cmp.Compare(load[x], load[y]),
			cmp.Compare(min(i, 1), min(worst, 1)),
			byOrdinal(x, y),
		) > 0 {
			worst = i
		}
	}
	if len(set) == 0 {
		return ""
	}
	return set[worst]
}

// leastCrowded is the broker to take a replica: in the zone with the fewest, and
// with the fewest itself.
func (b *brokers) leastCrowded(set, from []string, load map[string]int) string {
	free := slices.DeleteFunc(slices.Clone(from), func(n string) bool { return slices.Contains(set, n) })
	best := ""
	for _, n := range free {
		if best == "" || cmp.Or(
			cmp.Compare(b.inZone(set, b.zone[n]), b.inZone(set, b.zone[best])),
			cmp.Compare(load[n], load[best]),
		) < 0 {
			best = n
		}
	}
	return best
}

// even tells whether a set is spread over the zones as evenly as the brokers
// allow: no zone has two more than one that could take another.
func (b *brokers) even(set []string) bool {
	most := 0
	for _, n := range set {
		most = max(most, b.inZone(set, b.zone[n]))
	}
	for _, n := range b.nodes {
		if !slices.Contains(set, n) && !b.down[n] && b.inZone(set, b.zone[n])+2 <= most {
			return false
		}
	}
	return true
}
