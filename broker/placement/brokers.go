package placement

import (
	"cmp"
	"slices"

	"felix.dev/felix/broker/catalog"
)

// brokers are those that may hold something: all that are not draining, or all
// when every one is.
type brokers struct {
	nodes []string // by ordinal
	zone  map[string]string
	down  map[string]bool
}

func brokersOf(v View) brokers {
	all := v.State.Brokers()
	stay := slices.DeleteFunc(slices.Clone(all), func(b catalog.Broker) bool { return b.Draining })
	if len(stay) == 0 {
		stay = all
	}
	out := brokers{zone: make(map[string]string, len(stay)), down: v.Down}
	for _, b := range stay {
		out.nodes = append(out.nodes, b.NodeID)
		out.zone[b.NodeID] = b.Zone
	}
	slices.SortFunc(out.nodes, byOrdinal)
	return out
}

// byOrdinal orders node ids so that felix-2 comes before felix-10.
func byOrdinal(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func (b *brokers) has(node string) bool {
	_, ok := b.zone[node]
	return ok
}

// up are the nodes that are not down.
func (b *brokers) up() []string {
	return slices.DeleteFunc(slices.Clone(b.nodes), func(n string) bool { return b.down[n] })
}

// least is the node that is least by a measure, the lowest ordinal among equals;
// empty if there is none.
func least(nodes []string, measure func(node string) int) string {
	best := ""
	for _, n := range nodes {
		if best == "" || cmp.Or(cmp.Compare(measure(n), measure(best)), byOrdinal(n, best)) < 0 {
			best = n
		}
	}
	return best
}
