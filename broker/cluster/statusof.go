package cluster

import (
	"fmt"
	"slices"
	"strings"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// statusOf puts a status together of the catalog and of what brokers said last.
func statusOf(st *catalog.State, words map[string]word, leader func(uint32) (string, uint64)) Status {
	s := Status{Cluster: st.Cluster(), Settings: st.Settings()}
	up := func(node, instance string) bool {
		w, ok := words[node]
		return ok && !w.at.IsZero() && w.failed == "" && w.report.Instance == instance
	}
	for _, g := range st.Groups() {
		s.Groups = append(s.Groups, groupStatus(&g, words, leader, up))
	}
	for _, b := range st.Brokers() {
		w := words[b.NodeID]
		bs := BrokerStatus{Broker: b, Up: up(b.NodeID, b.Instance), Trouble: w.failed, Heard: w.at}
		if !bs.Up && bs.Trouble == "" {
			bs.Trouble = "nothing was heard of it yet"
		}
		s.Brokers = append(s.Brokers, bs)
	}
	for i := range s.Brokers {
		judge(&s.Brokers[i], s.Groups)
	}
	s.countShards(st, words)
	return s
}

func groupStatus(
	g *catalog.Group, words map[string]word, leader func(uint32) (string, uint64), up func(node, instance string) bool,
) GroupStatus {
	out := GroupStatus{ID: g.ID, Target: g.Target}
	out.Leader, out.Term = leader(g.ID)
	var led *groupReport
	if w, ok := words[out.Leader]; ok {
		if led = w.report.group(g.ID); led != nil && !led.Leading {
			led = nil // it says something else
		}
	}
	members := g.Members
	if led != nil {
		out.Next = led.Next
		members = nil
		for _, m := range led.Members {
			members = append(members, catalog.Member{Node: m.Node, Instance: m.Instance, Voter: m.Voter})
		}
	}
	for _, m := range members {
		ms := MemberStatus{Node: m.Node, Instance: m.Instance, Voter: m.Voter, Up: up(m.Node, m.Instance)}
		if led != nil {
			i := slices.IndexFunc(led.Members, func(r memberReport) bool { return r.Node == m.Node && r.Instance == m.Instance })
			ms.CaughtUp, ms.Lag = led.Members[i].CaughtUp, led.Members[i].Lag
		}
		if own := ownWord(words, m, g.ID); own != nil {
			ms.Applied = own.Applied
			switch {
			case own.Stuck != "":
				ms.State = own.Stuck
			case own.Restoring:
				ms.State = "installing a snapshot"
			}
		}
		out.Members = append(out.Members, ms)
	}
	slices.SortFunc(out.Members, func(a, b MemberStatus) int {
		return slices.Compare([]string{a.Node, a.Instance}, []string{b.Node, b.Instance})
	})
	return out
}

// ownWord is what a member says about its replica of a group.
func ownWord(words map[string]word, m catalog.Member, group uint32) *groupReport {
	w, ok := words[m.Node]
	if !ok || w.report.Instance != m.Instance {
		return nil
	}
	return w.report.group(group)
}

// judge says what a broker holds in groups, whether that is up to date, and whether
// the broker may be stopped. // B84
func judge(b *BrokerStatus, groups []GroupStatus) {
	b.InSync, b.CanStop = b.Up, true
	if !b.Up {
		b.Because = append(b.Because, "it does not answer")
	}
	self := serverOf(b.Broker)
	var toCome, minority []uint32
	var late lateness
	for i := range groups {
		g := &groups[i]
		meta := g.ID == catalog.MetadataGroup
		voters, caught, led := 0, 0, false
		var own *MemberStatus
		for k := range g.Members {
			m := &g.Members[k]
			is := quorum.Server{Node: m.Node, Instance: m.Instance} == self
			led = led || m.CaughtUp // as a leader always is with itself
			if is {
				own = m
			}
			if m.Voter {
				voters++
				if !is && m.CaughtUp && m.Up && m.State == "" {
					caught++
				}
			}
		}
		if slices.Contains(g.Target, b.NodeID) && (own == nil || !own.Voter) {
			toCome = append(toCome, g.ID)
		}
		if own == nil {
			continue
		}
		if !meta {
			b.Holds.Replicas++
		}
		b.Holds.Voter = b.Holds.Voter || meta && own.Voter
		if g.Leader == b.NodeID && !meta {
			b.Holds.Leads++
		}
		if b.Up {
			late.add(g.ID, own, led)
		}
		if need := voters/2 + 1; own.Voter && caught < need {
			minority = append(minority, g.ID)
		}
	}
	for _, why := range late.reasons() {
		b.lacks("%s", why)
	}
	if len(toCome) > 0 {
		b.lacks("it is still to become a voter of %s", groupsText(toCome))
	}
	if len(minority) > 0 {
		b.CanStop = false
		b.Because = append(b.Because, "without it there would be no majority of "+groupsText(minority))
	}
}

func groupsText(ids []uint32) string {
	if len(ids) == 1 {
		return fmt.Sprintf("group %d", ids[0])
	}
	return "groups " + strings.Trim(fmt.Sprint(ids), "[]")
}

func (b *BrokerStatus) lacks(format string, args ...any) {
	b.InSync = false
	b.Because = append(b.Because, fmt.Sprintf(format, args...))
}

// countShards counts the shards with one owner, and lists those on their way.
func (s *Status) countShards(st *catalog.State, words map[string]word) {
	at := make(map[string]*BrokerStatus, len(s.Brokers))
	for i := range s.Brokers {
		at[s.Brokers[i].NodeID] = &s.Brokers[i]
	}
	for _, e := range st.List() {
		for i, p := range e.Places {
			if b := at[p.Owner]; b != nil && p.Group == 0 {
				b.Holds.Shards++
			}
			if p.Moving != "" {
				m := MoveStatus{Stream: e.Spec.Name, Shard: uint32(i), From: p.Owner, To: p.Moving}
				for _, r := range words[p.Moving].report.Moves {
					if r.Stream == e.Spec.Name.String() && r.Shard == m.Shard {
						m.Problem = r.Error
					}
				}
				s.Moves = append(s.Moves, m)
			}
		}
	}
}
