package broker

import (
	"fmt"
	"strings"
	"sync/atomic"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
)

// caughtUp remembers that a broker has been up to date since it started. Later trouble
// of a group shows elsewhere and does not take the broker out of service: the other
// groups would go with it.
type caughtUp struct{ once atomic.Bool }

// check says whether the broker has everything that its groups had when it came back:
// until then whoever restarts brokers one by one must not go on.
func (m *member) check() admin.Check {
	c := admin.Check{Name: "cluster", Ready: true}
	st := m.cluster.State()
	var behind, stuck []string
	for _, g := range st.Groups() {
		q, here := m.cluster.Group(g.ID)
		if !here {
			if g.Has(m.self.Node) || g.ID == catalog.MetadataGroup {
				behind = append(behind, fmt.Sprintf("group %d is not open yet", g.ID))
			}
			continue
		}
		s := q.State()
		switch {
		case s.Stuck != nil:
			stuck = append(stuck, fmt.Sprintf("group %d is stuck: %v", g.ID, s.Stuck))
		case s.Restoring:
			behind = append(behind, fmt.Sprintf("group %d is being restored from its leader", g.ID))
		case !s.LeaderKnown:
			behind = append(behind, fmt.Sprintf("group %d has no leader that is known here", g.ID))
		case s.Applied < s.Commit:
			behind = append(behind, fmt.Sprintf("group %d has %d entries to apply", g.ID, s.Commit-s.Applied))
		}
	}
	if len(behind) == 0 && len(stuck) == 0 {
		m.ready.once.Store(true)
	}
	c.Ready = m.ready.once.Load()
	c.Message = strings.Join(append(stuck, behind...), "; ")
	return c
}
