package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/catalog"
)

// scene is a catalog with brokers a, b and c, group 1 on all of them led by a, and
// what they have said.
type scene struct {
	st    *catalog.State
	words map[string]word
	index uint64
}

func newScene(t *testing.T) *scene {
	s := &scene{st: catalog.New(), words: make(map[string]word)}
	s.do(t, catalog.FoundCluster{Cluster: "c1", Settings: catalog.Settings{Groups: 1}, Founder: catalog.Broker{NodeID: "a", Instance: "1", Peer: "a:1"}})
	for _, node := range []string{"b", "c"} {
		s.do(t, catalog.RegisterBroker{Broker: catalog.Broker{NodeID: node, Instance: "1", Peer: node + ":1"}})
	}
	all := []string{"a", "b", "c"}
	s.do(t, catalog.SetTargets{Targets: []catalog.GroupTarget{{ID: 0, Nodes: all}, {ID: 1, Nodes: all}}})
	var members []catalog.Member
	var reports []memberReport
	for _, node := range all {
		members = append(members, catalog.Member{Node: node, Instance: "1", Voter: true})
		reports = append(reports, memberReport{Node: node, Instance: "1", Voter: true, CaughtUp: true})
	}
	for id := range uint32(2) {
		s.do(t, catalog.ReportGroup{ID: id, Term: 2, Leader: "a", Members: members})
	}
	for _, node := range all {
		r := report{Node: node, Instance: "1"}
		for id := range uint32(2) {
			g := groupReport{Group: id, Leader: "a", Term: 2, Applied: 7, Last: 7}
			if node == "a" {
				g.Leading, g.Members = true, append([]memberReport(nil), reports...)
			}
			r.Groups = append(r.Groups, g)
		}
		s.words[node] = word{report: r, at: noon}
	}
	return s
}

func (s *scene) do(t *testing.T, cmd catalog.Command) {
	t.Helper()
	s.index++
	var r catalog.Result
	if s.st, r = s.st.Apply(s.index, cmd, noon); r.Err != nil {
		t.Fatal(r.Err)
	}
}

func (s *scene) status() Status {
	return statusOf(s.st, s.words, func(id uint32) (string, uint64) {
		g, _ := s.st.Group(id)
		return g.Leader, g.Term
	})
}

// briefly is who is up, in sync and may stop, and why not.
func briefly(s Status) (lines []string) {
	for _, b := range s.Brokers {
		lines = append(lines, fmt.Sprintf("%s up=%v sync=%v stop=%v %+v %s", b.NodeID, b.Up, b.InSync, b.CanStop, b.Holds, strings.Join(b.Because, "; ")))
	}
	return lines
}

// B84: who may be restarted next.
func TestStatusSaysWhoMayStop(t *testing.T) {
	const (
		one   = "{Replicas:1 Leads:0 Shards:0 Voter:true}"
		leads = "{Replicas:1 Leads:1 Shards:0 Voter:true}"
	)
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, s *scene)
		want   []string
	}{
		{"all is well", func(*testing.T, *scene) {}, []string{
			"a up=true sync=true stop=true " + leads + " ",
			"b up=true sync=true stop=true " + one + " ",
			"c up=true sync=true stop=true " + one + " ",
		}},
		{"one is behind", func(_ *testing.T, s *scene) {
			m := &s.words["a"].report.Groups[1].Members[1]
			m.CaughtUp, m.Lag = false, 500
		}, []string{
			"a up=true sync=true stop=false " + leads + " without it there would be no majority of group 1",
			"b up=true sync=false stop=true " + one + " its replica of group 1 is behind: 500 entries to go",
			"c up=true sync=true stop=false " + one + " without it there would be no majority of group 1",
		}},
		{"one is away", func(_ *testing.T, s *scene) {
			s.words["c"] = word{report: s.words["c"].report, at: noon, failed: "connection refused"}
		}, []string{
			"a up=true sync=true stop=false " + leads + " without it there would be no majority of groups 0 1",
			"b up=true sync=true stop=false " + one + " without it there would be no majority of groups 0 1",
			"c up=false sync=false stop=true " + one + " it does not answer",
		}},
		{"B82: one is stuck", func(_ *testing.T, s *scene) { s.words["b"].report.Groups[1].Stuck = "no space left on device" }, []string{
			"a up=true sync=true stop=false " + leads + " without it there would be no majority of group 1",
			"b up=true sync=false stop=true " + one + " its replica of group 1: no space left on device",
			"c up=true sync=true stop=false " + one + " without it there would be no majority of group 1",
		}},
		{"B82: all of its replicas are stuck for one reason", func(_ *testing.T, s *scene) {
			for i := range s.words["b"].report.Groups {
				s.words["b"].report.Groups[i].Stuck = "no space left on device"
			}
		}, []string{
			"a up=true sync=true stop=false " + leads + " without it there would be no majority of groups 0 1",
			"b up=true sync=false stop=true " + one + " its replicas of groups 0 1: no space left on device",
			"c up=true sync=true stop=false " + one + " without it there would be no majority of groups 0 1",
		}},
		{"B87: one was wiped and is nowhere yet", func(t *testing.T, s *scene) {
			s.do(t, catalog.RegisterBroker{Broker: catalog.Broker{NodeID: "c", Instance: "2", Peer: "c:1"}, Replaces: "1"})
			s.words["c"] = word{report: report{Node: "c", Instance: "2"}, at: noon}
		}, []string{
			"a up=true sync=true stop=false " + leads + " without it there would be no majority of groups 0 1",
			"b up=true sync=true stop=false " + one + " without it there would be no majority of groups 0 1",
			"c up=true sync=false stop=true {Replicas:0 Leads:0 Shards:0 Voter:false} it is still to become a voter of groups 0 1",
		}},
		{"nobody leads", func(_ *testing.T, s *scene) { s.words["a"].report.Groups[1].Leading = false }, []string{
			"a up=true sync=false stop=false " + leads + " nobody is known to lead group 1; without it there would be no majority of group 1",
			"b up=true sync=false stop=false " + one + " nobody is known to lead group 1; without it there would be no majority of group 1",
			"c up=true sync=false stop=false " + one + " nobody is known to lead group 1; without it there would be no majority of group 1",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t)
			tc.change(t, s)
			if diff := cmp.Diff(briefly(s.status()), tc.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestStatusShowsShards(t *testing.T) {
	s := newScene(t)
	name := catalog.Name{Tenant: "t", Namespace: "n", Stream: "s"}
	s.do(t, catalog.CreateStream{
		Spec: catalog.StreamSpec{Name: name, Shards: 2}, Incarnation: strings.Repeat("ab", 16), Places: []catalog.ShardPlace{{Owner: "b"}, {Owner: "c"}},
	})
	s.do(t, catalog.BeginMove{MoveShard: catalog.MoveShard{Name: name, Incarnation: strings.Repeat("ab", 16), Shard: 1, Epoch: 1, To: "a"}})
	w := s.words["a"]
	w.report.Moves = []moveReport{{Stream: name.String(), Shard: 1, From: "c", Error: "no route"}}
	s.words["a"] = w
	got := s.status()
	if diff := cmp.Diff(got.Moves, []MoveStatus{{Stream: name, Shard: 1, From: "c", To: "a", Problem: "no route"}}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if got.Brokers[1].Holds.Shards != 1 || got.Brokers[2].Holds.Shards != 1 || got.Brokers[0].Holds.Shards != 0 {
		t.Errorf("got %v", briefly(got))
	}
}

func TestMinorityIsDescribed(t *testing.T) {
	s := newScene(t)
	if got := describeMinority(s.st, "a", s.words); !strings.Contains(got, "electing") {
		t.Errorf("got %q", got)
	}
	delete(s.words, "b")
	s.words["c"] = word{failed: "refused"}
	const want = "the metadata group has no majority as seen from broker a: 1 of its 3 voters are there and 2 are needed, missing: b, c"
	if got := describeMinority(s.st, "a", s.words); got != want {
		t.Errorf("got %q", got)
	}
	// B87: who answers under that name was wiped, and has no vote.
	s.words["c"] = word{report: report{Node: "c", Instance: "2"}, at: noon}
	if got := describeMinority(s.st, "a", s.words); got != want {
		t.Errorf("with another c: got %q", got)
	}
}
