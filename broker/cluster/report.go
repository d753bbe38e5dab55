package cluster

import (
	"errors"
	"fmt"

	"felix.dev/felix/broker/quorum"
)

// report is what this broker says about itself.
func (c *Cluster) report() report {
	out := report{
		Node: c.cfg.Self.Node, Instance: c.cfg.Self.Instance, Peer: c.cfg.Broker.Peer, Since: c.since,
		Heard: c.cfg.Book.tell(), Moves: c.moves.report(),
	}
	for _, r := range c.replicas.list() {
		st := r.group.State()
		g := groupReport{
			Group: r.id, Leading: st.Leading, Term: st.Term, Applied: st.Applied, Last: st.Last, Restoring: st.Restoring,
		}
		if st.LeaderKnown {
			g.Leader = st.Leader.Node
		}
		if st.Stuck != nil {
			g.Stuck = stuckText(st.Stuck)
		}
		if next := r.next.Load(); next != nil && st.Leading {
			g.Next = *next
		}
		if st.Leading {
			g.Members = memberReports(r.group, c.cfg.Self)
		}
		out.Groups = append(out.Groups, g)
	}
	return out
}

// stuckText leaves out which group it is, and since when it is tried in vain: groups that
// are stuck for one reason say the same.
func stuckText(err error) string {
	if e, ok := errors.AsType[*quorum.StuckError](err); ok && e.Err != nil {
		return fmt.Sprintf("its %s fails: %v", e.What, e.Err)
	}
	return err.Error()
}

func memberReports(g *quorum.Group, self quorum.Server) []memberReport {
	members, err := g.Members()
	if err != nil {
		return nil // it does not lead any more
	}
	out := make([]memberReport, len(members))
	for i, m := range members {
		caught, lag := m.Server == self, uint64(0)
		if !caught {
			caught, lag = g.CaughtUp(m.Server)
		}
		out[i] = memberReport{Node: m.Node, Instance: m.Instance, Voter: m.Voter, CaughtUp: caught, Lag: lag}
	}
	return out
}

// group finds what a report says about a group; nil: nothing.
func (r report) group(id uint32) *groupReport {
	for i := range r.Groups {
		if r.Groups[i].Group == id {
			return &r.Groups[i]
		}
	}
	return nil
}

// caughtUp tells whether the leader that reports has a voter that has what it has.
func (g *groupReport) caughtUp(s quorum.Server) bool {
	for _, m := range g.Members {
		if m.Node == s.Node && m.Instance == s.Instance {
			return m.Voter && m.CaughtUp
		}
	}
	return false
}
