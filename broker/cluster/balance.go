package cluster

import (
	"slices"
	"time"

	"felix.dev/felix/broker/catalog"
)

// balancer decides when a group is handed to the broker that should lead it:
// gently, one at a time, and a group that keeps coming back ever more rarely.
type balancer struct {
	settle time.Duration
	groups map[uint32]*balance
	until  time.Time // nothing is handed over before
	rush   bool      // somebody asked for balance: until all is well, no leader is left alone
}

// balance is what has been tried with a group.
type balance struct {
	leader string
	since  time.Time // the leader leads
	tries  int
	next   time.Time // not before
}

// maxSettle bounds how long a group that keeps coming back is left alone.
const maxSettle = 10 * time.Minute

func newBalancer(settle time.Duration) *balancer {
	return &balancer{settle: settle, groups: make(map[uint32]*balance)}
}

// handover is a leadership that is to go from one broker to another.
type handover struct {
	group    uint32
	from, to string
}

// next chooses what to hand over now, if anything. fit tells whether a broker could
// lead a group at this moment: it is there, it votes, it has caught up and is not
// stuck. pending says that something is to be handed over, now or later.
func (b *balancer) next(
	now time.Time, groups []catalog.Group, leader func(uint32) string, fit func(group uint32, node string) bool,
) (h handover, ok, pending bool) {
	var found *handover
	for i := range groups {
		g := &groups[i]
		leads := leader(g.ID)
		have := b.groups[g.ID]
		if have == nil {
			have = &balance{}
			b.groups[g.ID] = have
		}
		if have.leader != leads {
			have.leader, have.since = leads, now
		}
		first := slices.IndexFunc(g.Target, func(node string) bool { return fit(g.ID, node) })
		if leads == "" || first < 0 || g.Target[first] == leads {
			continue
		}
		pending = true
		patient := !b.rush && (now.Sub(have.since) < b.settle || now.Before(b.until))
		if found == nil && !patient && !now.Before(have.next) {
			found = &handover{g.ID, leads, g.Target[first]}
		}
	}
	b.rush = b.rush && pending
	if found == nil {
		return handover{}, false, pending
	}
	tried := b.groups[found.group]
	tried.next = now.Add(min(b.settle<<min(tried.tries, 10), maxSettle))
	tried.tries++
	b.until = now.Add(b.settle / 5)
	return *found, true, true
}

// forget has every group looked at as if for the first time, because somebody
// asks for it.
func (b *balancer) forget() {
	for _, have := range b.groups {
		have.tries, have.next = 0, time.Time{}
	}
	b.rush = true
}

// calm forgets the failures of groups that are where they should be for long.
func (b *balancer) calm(now time.Time, groups []catalog.Group) {
	for _, g := range groups {
		if have := b.groups[g.ID]; have != nil && len(g.Target) > 0 && have.leader == g.Target[0] && now.Sub(have.since) > maxSettle {
			have.tries = 0
		}
	}
}
