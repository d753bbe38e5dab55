package broker

import (
	"strings"
	"sync/atomic"

	"felix.dev/felix/broker/admin"
)

// caughtUp remembers that a broker has been up to date since it started. Later trouble
// of a group shows elsewhere and does not take the broker out of service: the other
// groups would go with it.
type caughtUp struct{ once atomic.Bool }

// check says whether the broker has everything that its groups had when it came back:
// until then whoever restarts brokers one by one must not go on. It is for the groups'
// leaders to say: a replica does not know what it has not heard of.
func (m *member) check() admin.Check {
	c := admin.Check{Name: "cluster", Ready: true}
	lacks := m.cluster.Lacks()
	if len(lacks) == 0 {
		m.ready.once.Store(true)
	}
	c.Ready = m.ready.once.Load()
	c.Message = strings.Join(lacks, "; ")
	return c
}
