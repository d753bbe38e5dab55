package placement

import "slices"

// balanceLeaders evens out how many groups brokers should lead: it puts another
// replica first. What the metadata group's leader does counts, and that group's
// leader stays who it is.
func balanceLeaders(nodes []string, sets [][]string, data []int) {
	leads := make(map[string]int)
	for _, set := range sets {
		leads[set[0]]++
	}
	possible := func(from, to string) int {
		for _, g := range data {
			if sets[g][0] == from && slices.Contains(sets[g], to) {
				return g
			}
		}
		return -1
	}
	balance(nodes, leads, possible, func(path []step) bool {
		for _, s := range path { // each from another broker, so each of another group
			set := slices.Clone(sets[s.group])
			i := slices.Index(set, s.to)
			set[0], set[i] = set[i], set[0]
			sets[s.group] = set
		}
		return true
	})
}
