package placement

import (
	"slices"

	"felix.dev/felix/broker/catalog"
)

// metadataVoters is how many brokers vote about the catalog, if there are so many.
const metadataVoters = 5

// voters is how many replicas a group gets. An even number tolerates no more
// failures than one less and waits for more brokers, except that two disks keep
// more than one.
func voters(wanted, available int) int {
	n := max(1, min(wanted, available))
	if n > 2 && n%2 == 0 {
		n--
	}
	return n
}

// groupTargets are the groups whose target is not what it should be.
func groupTargets(v View) []catalog.GroupTarget {
	b := brokersOf(v)
	if len(b.nodes) == 0 {
		return nil
	}
	before := v.State.Groups()
	sets := make([][]string, len(before)) // the preferred leader first
	load := make(map[string]int)
	for i := range before {
		for _, n := range before[i].Target {
			if b.has(n) {
				sets[i] = append(sets[i], n)
				if before[i].ID != catalog.MetadataGroup {
					load[n]++
				}
			}
		}
	}
	data := make([]int, 0, len(before)) // the groups of streams
	for i := range before {
		if before[i].ID == catalog.MetadataGroup {
			sets[i] = b.fit(sets[i], voters(metadataVoters, len(b.nodes)), make(map[string]int))
			continue
		}
		data = append(data, i)
		sets[i] = b.fit(sets[i], voters(v.State.Settings().Replicas, len(b.nodes)), load)
	}
	b.balanceReplicas(sets, data, load)
	balanceLeaders(b.nodes, sets, data)
	var out []catalog.GroupTarget
	for i := range before {
		if !sameTarget(before[i].Target, sets[i]) {
			slices.SortFunc(sets[i][1:], byOrdinal)
			out = append(out, catalog.GroupTarget{ID: before[i].ID, Nodes: sets[i]})
		}
	}
	return out
}

// sameTarget tells whether two targets have the same preferred leader and the same
// replicas.
func sameTarget(a, b []string) bool {
	if len(a) != len(b) || len(a) > 0 && a[0] != b[0] {
		return false
	}
	return !slices.ContainsFunc(a, func(n string) bool { return !slices.Contains(b, n) })
}

// balanceReplicas evens out how many groups brokers hold, as far as zones allow.
func (b *brokers) balanceReplicas(sets [][]string, data []int, load map[string]int) {
	swapped := func(set []string, from, to string) []string {
		i := slices.Index(set, from)
		if i < 0 || slices.Contains(set, to) {
			return nil
		}
		// At the end: a broker that has nothing yet is no good leader.
		out := append(slices.Delete(slices.Clone(set), i, i+1), to)
		if !b.even(out) {
			return nil
		}
		return out
	}
	possible := func(from, to string) int {
		if b.down[to] {
			return -1
		}
		last := -1
		for _, g := range data {
			if swapped(sets[g], from, to) == nil {
				continue
			}
			if sets[g][0] != from { // a leader stays, if it can
				return g
			}
			last = g
		}
		return last
	}
	balance(b.nodes, load, possible, func(path []step) bool {
		next := slices.Clone(sets)
		for _, s := range slices.Backward(path) {
			if next[s.group] = swapped(next[s.group], s.from, s.to); next[s.group] == nil {
				return false
			}
		}
		copy(sets, next)
		return true
	})
}
