package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"felix.dev/felix/broker/quorum"
)

// server of "a1" is node a with instance 1.
func server(text string) quorum.Server {
	return quorum.Server{Node: text[:1], Instance: text[1:]}
}

// membersOf reads "a1 b1 c2+": + marks those that only learn.
func membersOf(text string) []quorum.Member {
	var out []quorum.Member
	for f := range strings.FieldsSeq(text) {
		id, learns := strings.CutSuffix(f, "+")
		out = append(out, quorum.Member{Server: server(id), Voter: !learns})
	}
	return out
}

func TestNextStep(t *testing.T) {
	for _, tc := range []struct {
		name       string
		self       string
		members    string
		reported   string // empty: as the members are
		voters     string // wanted
		learners   string
		registered string
		away       string // nodes
		behind     string // servers
		want       string
	}{
		{"all is well", "a1", "a1 b1 c1", "", "a b c", "", "a1 b1 c1", "", "", "none"},
		{"all is well with learners", "a1", "a1 b1 c1 d1+", "", "a b c", "d", "a1 b1 c1 d1", "", "d1", "wait d1"},
		{"a change is reported first", "a1", "a1 b1 c1+", "a1 b1", "a b c", "", "a1 b1 c1", "", "", "report a1"},
		{"a vote is a change", "a1", "a1 b1 c1", "a1 b1 c1+", "a b c", "", "a1 b1 c1", "", "", "report a1"},
		{"one comes as a learner", "a1", "a1", "", "a b c", "", "a1 b1 c1", "", "", "add b1"},
		{"the next waits while one catches up", "a1", "a1 b1+", "", "a b c", "", "a1 b1 c1", "", "b1", "wait b1"},
		{"who hangs holds nobody up", "a1", "a1 b1+", "", "a b c", "", "a1 b1 c1", "b", "b1", "add c1"},
		{"who has caught up waits for the next to be added", "a1", "a1 b1+", "", "a b c", "", "a1 b1 c1", "", "", "add c1"},
		{"then it votes", "a1", "a1 b1+ c1+", "", "a b c", "", "a1 b1 c1", "", "c1", "wait c1"},
		{"then it votes, too", "a1", "a1 b1+ c1+", "", "a b c", "", "a1 b1 c1", "c", "c1", "promote b1"},
		{"who is away is not added", "a1", "a1 b1", "", "a b c", "", "a1 b1 c1", "c", "", "wait c1"},
		{"a learner votes though another is away", "a1", "a1 b1+", "", "a b c", "", "a1 b1 c1", "c", "", "promote b1"},
		{"who is not registered is not added", "a1", "a1 b1", "", "a b c", "", "a1 b1", "", "", "none"},
		{"B87: another data directory is another server, the old one goes first", "a1", "a1 b1 c1", "", "a b c", "", "a1 b2 c1", "", "b1", "remove b1"},
		{"B87: then it learns", "a1", "a1 c1", "", "a b c", "", "a1 b2 c1", "", "", "add b2"},
		{"B87: it does not vote before it has caught up", "a1", "a1 c1 b2+", "", "a b c", "", "a1 b2 c1", "", "b2", "wait b2"},
		{"B87: then it votes", "a1", "a1 c1 b2+", "", "a b c", "", "a1 b2 c1", "", "", "promote b2"},
		{"B87: wiped again while it learns", "a1", "a1 c1 b2+", "", "a b c", "", "a1 b3 c1", "", "b2", "remove b2"},
		{"B76: a broker that was removed is taken out", "a1", "a1 b1 c1", "", "a b", "", "a1 b1", "", "", "remove c1"},
		{"who goes waits for who comes", "a1", "a1 b1 c1 d1+", "", "a b d", "", "a1 b1 c1 d1", "", "d1", "wait d1"},
		{"who comes votes before somebody goes", "a1", "a1 b1 c1 d1+", "", "a b d", "", "a1 b1 c1 d1", "", "", "promote d1"},
		{"then he goes", "a1", "a1 b1 c1 d1", "", "a b d", "", "a1 b1 c1 d1", "", "", "remove c1"},
		{"one that is down for good goes, too", "a1", "a1 b1 c1 d1", "", "a b d", "", "a1 b1 c1 d1", "c", "c1", "remove c1"},
		{"not if what is left would be no majority", "a1", "a1 b1 c1 d1 e1", "", "a b d", "", "a1 b1 c1 d1 e1", "b d", "b1 d1", "wait c1"},
		{"who goes stays while who stays is away and no voter", "a1", "a1 b1 c1", "", "a b d", "", "a1 b1 c1 d1", "d", "", "wait d1"},
		{"the leader hands over before he goes", "a1", "a1 b1 c1 d1", "", "b c d", "", "a1 b1 c1 d1", "", "", "transfer b1"},
		{"to who has caught up", "a1", "a1 b1 c1 d1", "", "b c d", "", "a1 b1 c1 d1", "", "b1", "transfer c1"},
		{"to who is there", "a1", "a1 b1 c1 d1", "", "b c d", "", "a1 b1 c1 d1", "b", "c1", "transfer d1"},
		{"or to nobody yet", "a1", "a1 b1 c1 d1", "", "b c d", "", "a1 b1 c1 d1", "", "b1 c1 d1", "wait a1"},
		{"others go before the leader", "a1", "a1 b1 c1 d1 e1", "", "c d e", "", "a1 b1 c1 d1 e1", "", "", "remove b1"},
		{"a learner that is to be none goes at once", "a1", "a1 b1 c1+", "", "a b", "", "a1 b1 c1", "c", "c1", "remove c1"},
		{"a voter becomes a learner", "a1", "a1 b1 c1 d1", "", "a b c", "d", "a1 b1 c1 d1", "", "", "demote d1"},
		{"B77: a learner stays one", "a1", "a1 b1 c1 d1+", "", "a b c", "d", "a1 b1 c1 d1", "", "", "none"},
		{"a group without a placement is left alone", "a1", "a1 b1", "", "", "", "a1 b1", "", "", "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := nextStep(tableView(tc.self, tc.members, tc.reported, tc.voters, tc.learners, tc.registered, tc.away, tc.behind)); got.brief() != tc.want {
				t.Errorf("got %s (%s), want %s", got.brief(), got.why, tc.want)
			}
		})
	}
}

func (s step) brief() string {
	if s.kind == stepNone {
		return "none"
	}
	return s.kind.String() + " " + s.server.Node + s.server.Instance
}

func tableView(self, members, reported, voters, learners, registered, away, behind string) view {
	v := view{
		self: server(self), members: membersOf(members), reported: membersOf(members),
		want: wanted{voters: strings.Fields(voters), learners: strings.Fields(learners)},
		up:   func(node string) bool { return !slices.Contains(strings.Fields(away), node) },
		caughtUp: func(s quorum.Server) (bool, uint64) {
			late := slices.Contains(strings.Fields(behind), s.Node+s.Instance)
			return !late, map[bool]uint64{true: 9}[late]
		},
		server: func(node string) (quorum.Server, bool) {
			for f := range strings.FieldsSeq(registered) {
				if f[:1] == node {
					return server(f), true
				}
			}
			return quorum.Server{}, false
		},
	}
	if reported != "" {
		v.reported = membersOf(reported)
	}
	return v
}

// TestStepsArrive: whatever is wanted, and whoever is away for a while, the steps
// arrive at it, never leave the group without a majority that is there, and never
// let anybody vote who has not caught up.
func TestStepsArrive(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		if err := arrives(r); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func arrives(r *rand.Rand) error {
	nodes := strings.Split("abcdefg", "")
	instance := make(map[string]int)
	pick := func(n int) []string {
		r.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
		return slices.Clone(nodes[:n])
	}
	g := &fakeGroup{away: map[string]bool{}}
	for _, node := range pick(1 + r.IntN(5)) {
		g.members = append(g.members, quorum.Member{Server: quorum.Server{Node: node, Instance: "0"}, Voter: true})
	}
	g.leader = g.members[0].Server
	want := wanted{voters: pick(1 + r.IntN(5))}
	for _, node := range nodes {
		if !slices.Contains(want.voters, node) && r.IntN(2) == 0 {
			want.learners = append(want.learners, node)
		}
	}
	if g.voters() > 2 && r.IntN(2) == 0 { // a volume is wiped that the group can spare
		instance[g.members[len(g.members)-1].Node] = 1
	}
	at := func(node string) (quorum.Server, bool) {
		return quorum.Server{Node: node, Instance: fmt.Sprint(instance[node])}, true
	}
	for n := range 200 {
		v := view{
			self: g.leader, members: slices.Clone(g.members), reported: slices.Clone(g.reported), want: want, server: at,
			up:       func(node string) bool { return !g.away[node] },
			caughtUp: func(s quorum.Server) (bool, uint64) { return g.caught[s] && !g.away[s.Node], 1 },
		}
		s := nextStep(v)
		if s.kind == stepNone {
			return g.is(want, at)
		}
		if err := g.do(s, at); err != nil {
			return fmt.Errorf("step %d, %s in %v, wanted %v: %w", n, s.brief(), g.members, want, err)
		}
		g.rest(r, n)
	}
	return fmt.Errorf("does not arrive at %v: %v", want, g.members)
}

// fakeGroup is a group as its leader changes it.
type fakeGroup struct {
	leader            quorum.Server
	members, reported []quorum.Member
	caught            map[quorum.Server]bool
	away              map[string]bool
}

func (g *fakeGroup) voters() (n int) {
	for _, m := range g.members {
		if m.Voter {
			n++
		}
	}
	return n
}

// rest lets time pass: learners catch up; early on somebody is away.
func (g *fakeGroup) rest(r *rand.Rand, n int) {
	if g.caught == nil {
		g.caught = make(map[quorum.Server]bool)
	}
	clear(g.away)
	for _, m := range g.members {
		if m.Server == g.leader {
			continue
		}
		if n < 20 && len(g.away) == 0 && g.voters() > 2 && r.IntN(4) == 0 {
			g.away[m.Node] = true
			continue
		}
		g.caught[m.Server] = true
	}
}

func (g *fakeGroup) do(s step, at func(string) (quorum.Server, bool)) error {
	i := slices.IndexFunc(g.members, func(m quorum.Member) bool { return m.Server == s.server })
	switch s.kind {
	case stepReport:
		g.reported = slices.Clone(g.members)
		return nil
	case stepWait:
		return nil
	case stepAdd:
		g.members = append(g.members, quorum.Member{Server: s.server})
		return nil
	default:
	}
	if i < 0 {
		return fmt.Errorf("no member")
	}
	switch s.kind {
	case stepPromote:
		if !g.caught[s.server] || g.away[s.server.Node] {
			return fmt.Errorf("it has not caught up")
		}
		g.members[i].Voter = true
	case stepTransfer:
		if !g.members[i].Voter || g.away[s.server.Node] {
			return fmt.Errorf("it cannot lead")
		}
		g.leader, g.reported = s.server, nil
	case stepDemote, stepRemove:
		if s.server == g.leader {
			return fmt.Errorf("it is the leader")
		}
		if s.kind == stepDemote {
			g.members[i].Voter = false
		} else {
			g.members = slices.Delete(g.members, i, i+1)
		}
		alive := 0
		for _, m := range g.members {
			if is, _ := at(m.Node); m.Voter && !g.away[m.Node] && is == m.Server {
				alive++
			}
		}
		if was, _ := at(s.server.Node); was == s.server && alive <= g.voters()/2 {
			return fmt.Errorf("no majority is left")
		}
	default:
	}
	return nil
}

func (g *fakeGroup) is(want wanted, at func(string) (quorum.Server, bool)) error {
	var expect []quorum.Member
	for _, node := range want.voters {
		s, _ := at(node)
		expect = append(expect, quorum.Member{Server: s, Voter: true})
	}
	for _, node := range want.learners {
		s, _ := at(node)
		expect = append(expect, quorum.Member{Server: s})
	}
	if !sameMembers(g.members, expect) {
		return fmt.Errorf("arrived at %v instead of %v", g.members, expect)
	}
	return nil
}
