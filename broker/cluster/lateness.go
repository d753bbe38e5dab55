package cluster

import (
	"fmt"
	"slices"
)

// lateness gathers what the replicas of one broker lack. What is the same for many of
// them is said once: a full disk is one trouble, whatever number of groups it stops.
type lateness struct {
	behind, leaderless []uint32
	lag                uint64

	states []string // in the order in which they were met
	of     map[string][]uint32
}

// add looks at the broker's replica of a group; led tells whether the group has a
// leader that says who has caught up.
func (l *lateness) add(group uint32, own *MemberStatus, led bool) {
	switch {
	case own.State != "":
		if !slices.Contains(l.states, own.State) {
			l.states = append(l.states, own.State)
		}
		if l.of == nil {
			l.of = make(map[string][]uint32)
		}
		l.of[own.State] = append(l.of[own.State], group)
	case own.CaughtUp:
	case !led:
		l.leaderless = append(l.leaderless, group)
	default:
		l.behind = append(l.behind, group)
		l.lag += own.Lag
	}
}

// reasons says it; nothing if all replicas are up to date.
func (l *lateness) reasons() (out []string) {
	for _, state := range l.states {
		out = append(out, fmt.Sprintf("%s: %s", replicasText(l.of[state]), state))
	}
	if len(l.leaderless) > 0 {
		out = append(out, "nobody is known to lead "+groupsText(l.leaderless))
	}
	if len(l.behind) > 0 {
		verb := "are"
		if len(l.behind) == 1 {
			verb = "is"
		}
		out = append(out, fmt.Sprintf("%s %s behind: %d entries to go", replicasText(l.behind), verb, l.lag))
	}
	return out
}

func replicasText(groups []uint32) string {
	if len(groups) == 1 {
		return "its replica of " + groupsText(groups)
	}
	return "its replicas of " + groupsText(groups)
}
