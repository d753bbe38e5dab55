package cluster

import (
	"fmt"
	"slices"

	"felix.dev/felix/broker/quorum"
)

// wanted is who a group's members are to be, as node ids.
type wanted struct {
	voters   []string // the preferred leader first
	learners []string
}

// view is what the leader of a group knows when it decides on the next step.
type view struct {
	self     quorum.Server
	members  []quorum.Member // as raft has them
	reported []quorum.Member // as the catalog has them
	want     wanted
	// server is the registered server of a node.
	server func(node string) (quorum.Server, bool)
	// up tells whether a node was heard of lately.
	up func(node string) bool
	// caughtUp tells whether a server has what the leader has, more or less, and
	// how many entries it lacks.
	caughtUp func(quorum.Server) (bool, uint64)
}

// stepKind is what a leader may do about its group's members.
type stepKind int

const (
	stepNone     stepKind = iota // everything is as it is to be
	stepWait                     // something has to come first, and nobody here can hurry it
	stepReport                   // tell the catalog who the members are
	stepAdd                      // as a learner
	stepPromote                  // a learner to a voter
	stepDemote                   // a voter to a learner
	stepRemove                   //
	stepTransfer                 // the leadership, as the leader has to go
)

func (k stepKind) String() string {
	return [...]string{"none", "wait", "report", "add", "promote", "demote", "remove", "transfer"}[k]
}

// step is one change of a group's members, and why.
type step struct {
	kind   stepKind
	server quorum.Server
	why    string
}

// nextStep decides on the next change of a group's members. Members change one at
// a time; every broker learns of a change from the catalog before the next one;
// who comes is a learner first; who goes, goes once all who are to stay vote.
//
// A server whose node has another data directory now is gone for good, and goes
// first: as long as it counts as a voter it only makes a majority harder to get.
func nextStep(v view) step {
	if !sameMembers(v.members, v.reported) {
		return step{stepReport, v.self, "members changed"}
	}
	for _, m := range v.members {
		if s, ok := v.server(m.Node); (!ok || s != m.Server) && m.Server != v.self {
			return step{stepRemove, m.Server, "its data directory is not part of the cluster any more"}
		}
	}
	for _, next := range []func(view) step{stepIn, stepUp, stepOut} {
		if s := next(v); s.kind != stepNone {
			return s
		}
	}
	return step{}
}

// stepIn adds a learner that is missing. One catches up at a time, so that the
// leader's disk and network are not those of a copier; one that cannot be reached
// keeps nobody else from coming.
func stepIn(v view) step {
	waiting := step{}
	for _, node := range slices.Concat(v.want.voters, v.want.learners) {
		s, registered := v.server(node)
		if !registered {
			continue
		}
		if m, in := memberOf(v.members, s); in {
			if ok, lag := v.caughtUp(s); !m.Voter && !ok {
				waiting = step{stepWait, s, fmt.Sprintf("%s catches up: %d entries to go", node, lag)}
				if v.up(node) {
					return waiting
				}
			}
			continue
		}
		if !v.up(node) {
			waiting = step{stepWait, s, node + " is to join, and does not answer"}
			continue
		}
		return step{stepAdd, s, "the catalog places a replica there"}
	}
	if s := stepUp(v); s.kind != stepNone { // nobody waits for who is away
		return s
	}
	return waiting
}

// stepUp promotes a learner that is to vote and has caught up.
func stepUp(v view) step {
	for _, node := range v.want.voters {
		s, registered := v.server(node)
		m, in := memberOf(v.members, s)
		if !registered || !in || m.Voter {
			continue
		}
		if ok, _ := v.caughtUp(s); ok {
			return step{stepPromote, s, "it has caught up"}
		}
	}
	return step{}
}

// stepOut lets a member go that is to be none, or a voter that is to be a
// learner.
func stepOut(v view) step {
	for _, m := range v.members {
		if node := m.Node; !m.Voter && !slices.Contains(v.want.voters, node) && !slices.Contains(v.want.learners, node) {
			return step{stepRemove, m.Server, "the catalog places no replica there"}
		}
	}
	var leaving []quorum.Member
	for _, m := range v.members {
		if m.Voter && !slices.Contains(v.want.voters, m.Node) {
			leaving = append(leaving, m)
		}
	}
	if len(leaving) == 0 || len(v.want.voters) == 0 {
		return step{}
	}
	for _, node := range v.want.voters {
		s, registered := v.server(node)
		if m, in := memberOf(v.members, s); !registered || !in || !m.Voter {
			return step{stepWait, s, node + " has to vote before somebody goes"}
		}
	}
	// The others first: the leader is who does it.
	slices.SortStableFunc(leaving, func(a, b quorum.Member) int {
		return boolRank(a.Server == v.self) - boolRank(b.Server == v.self)
	})
	goes := leaving[0].Server
	if goes == v.self {
		return handOver(v)
	}
	if alive, need := aliveWithout(v, goes); alive < need {
		return step{stepWait, goes, fmt.Sprintf("without %s there would be no majority: %d of %d needed are there", goes.Node, alive, need)}
	}
	if slices.Contains(v.want.learners, goes.Node) {
		return step{stepDemote, goes, "others vote in its place"}
	}
	return step{stepRemove, goes, "the catalog places no replica there"}
}

// handOver gives the leadership to the best of those that stay.
func handOver(v view) step {
	for _, node := range v.want.voters {
		s, _ := v.server(node)
		if ok, _ := v.caughtUp(s); ok && s != v.self && v.up(node) {
			return step{stepTransfer, s, "this broker has to go"}
		}
	}
	return step{stepWait, v.self, "this broker has to go, and nobody who stays has caught up"}
}

// aliveWithout counts the voters that would be there if one went, and how many
// would be needed.
func aliveWithout(v view, goes quorum.Server) (alive, need int) {
	voters := 0
	for _, m := range v.members {
		if !m.Voter || m.Server == goes {
			continue
		}
		voters++
		if ok, _ := v.caughtUp(m.Server); m.Server == v.self || ok {
			alive++
		}
	}
	return alive, voters/2 + 1
}

func memberOf(members []quorum.Member, s quorum.Server) (quorum.Member, bool) {
	i := slices.IndexFunc(members, func(m quorum.Member) bool { return m.Server == s })
	if i < 0 {
		return quorum.Member{}, false
	}
	return members[i], true
}

// sameMembers tells whether two lists have the same members in any order.
func sameMembers(a, b []quorum.Member) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(m quorum.Member) bool { return !slices.Contains(b, m) })
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
