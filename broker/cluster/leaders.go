package cluster

import (
	"maps"
	"time"

	"felix.dev/felix/broker/catalog"
)

// claim is a broker's word that it leads a group.
type claim struct {
	node string
	term uint64
}

// Leader says who leads a group, as far as is known here: from this broker's own
// replica, from what brokers said when they became leaders, or from the catalog.
// It is cheap.
func (c *Cluster) Leader(group uint32) (node string, term uint64, ok bool) {
	best := (*c.table.Load())[group]
	if g, here := c.Group(group); here {
		st := g.State()
		switch {
		case st.Leading:
			return c.cfg.Self.Node, st.Term, true
		case st.LeaderKnown && st.Term >= best.term:
			return st.Leader.Node, st.Term, true
		case best.node == c.cfg.Self.Node || best.term < st.Term:
			return "", st.Term, false // that was before
		}
	}
	return best.node, best.term, best.node != ""
}

// learnLeaders makes the table anew of everything that was heard.
func (c *Cluster) learnLeaders() {
	table := make(map[uint32]claim)
	better := func(group uint32, is claim) {
		if is.node != "" && is.term >= table[group].term {
			table[group] = is
		}
	}
	st := c.State()
	for _, g := range st.Groups() {
		better(g.ID, claim{g.Leader, g.Term})
	}
	for node, w := range c.around.words() {
		for _, g := range w.report.Groups {
			if g.Leading {
				better(g.Group, claim{node, g.Term})
			}
		}
	}
	if before := c.table.Swap(&table); !maps.Equal(*before, table) {
		c.leaders.notify()
	}
}

// metadataLeader is who leads the metadata group.
func (c *Cluster) metadataLeader() (node string, ok bool) {
	node, _, ok = c.Leader(catalog.MetadataGroup)
	return node, ok
}

// fitToLead tells whether a broker could lead a group now, by what it and the
// leader have said last.
func (c *Cluster) fitToLead() func(group uint32, node string) bool {
	st := c.State()
	words := c.around.words()
	words[c.cfg.Self.Node] = word{report: c.report(), at: time.Now()}
	return func(group uint32, node string) bool {
		b, ok := st.Broker(node)
		if !ok || b.Draining || !c.around.up(serverOf(b)) {
			return false
		}
		own := words[node].report.group(group)
		if own == nil || own.Stuck != "" {
			return false
		}
		leader, _, ok := c.Leader(group)
		if !ok || leader == node {
			return ok
		}
		led := words[leader].report.group(group)
		return led != nil && led.caughtUp(serverOf(b))
	}
}
