package placement

import "slices"

// step moves one unit of load from a broker to another.
type step struct {
	from, to string
	group    int
}

// balance evens out what brokers have, by taking steps along paths from one with
// much to one with at least two less. possible finds a step between two brokers, or
// a negative group; take takes all steps of a path, or none if they do not go
// together.
func balance(nodes []string, load map[string]int, possible func(from, to string) int, take func([]step) bool) {
	for improved := true; improved; {
		improved = false
		high := slices.Clone(nodes)
		slices.SortStableFunc(high, func(a, b string) int { return load[b] - load[a] })
		for _, from := range high {
			if path := lighten(nodes, load, from, possible); len(path) > 0 && take(path) {
				load[from]--
				load[path[len(path)-1].to]++
				improved = true
				break
			}
		}
	}
}

// lighten finds the shortest path from a broker to the one with the least of those
// that have at least two less; nothing if there is none.
func lighten(nodes []string, load map[string]int, from string, possible func(from, to string) int) []step {
	came := map[string]step{from: {}}
	best := ""
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if load[at]+2 <= load[from] && (best == "" || load[at] < load[best]) {
			best = at
		}
		for _, next := range nodes {
			if _, seen := came[next]; seen {
				continue
			}
			if g := possible(at, next); g >= 0 {
				came[next] = step{from: at, to: next, group: g}
				queue = append(queue, next)
			}
		}
	}
	var path []step
	for at := best; at != "" && at != from; at = came[at].from {
		path = append(path, came[at])
	}
	slices.Reverse(path)
	return path
}
