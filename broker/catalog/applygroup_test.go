package catalog

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargets(t *testing.T) {
	c := found(t, 3)
	c.do(SetTargets{Targets: []GroupTarget{{ID: 0, Nodes: []string{"n1", "n2"}}, {ID: 2, Nodes: []string{"n3", "n1", "n2"}}}})
	g, _ := c.state.Group(2)
	if !cmp.Equal(g.Target, []string{"n3", "n1", "n2"}) {
		t.Errorf("got %+v", g)
	}
	for what, nodes := range map[string][]string{"nobody": nil, "unknown": {"n9"}, "twice": {"n1", "n1"}, "many": make([]string, MaxReplicas+1)} {
		if r := c.try(SetTargets{Targets: []GroupTarget{{ID: 0, Nodes: []string{"n3"}}, {ID: 1, Nodes: nodes}}}); !errors.Is(r.Err, ErrPlacement) {
			t.Errorf("%s: got %v", what, r.Err)
		}
	}
	c.refused(SetTargets{Targets: []GroupTarget{{ID: 3, Nodes: []string{"n1"}}}}, ErrPlacement)
	if g, _ := c.state.Group(0); !cmp.Equal(g.Target, []string{"n1", "n2"}) {
		t.Errorf("half of a refused command was done: %+v", g)
	}
}

func TestReport(t *testing.T) {
	c := found(t, 2)
	members := []Member{{"n1", "i1", true}, {"n2", "i2", false}}
	c.do(ReportGroup{ID: 1, Term: 5, Leader: "n1", Members: members})
	c.do(ReportGroup{ID: 1, Term: 5, Leader: "n1", Members: members[:1]})
	g, _ := c.state.Group(1)
	if g.Term != 5 || g.Leader != "n1" || !g.Has("n1") || g.Has("n2") {
		t.Errorf("got %+v", g)
	}
	c.refused(ReportGroup{ID: 1, Term: 4, Leader: "n2"}, ErrStale)
	c.refused(ReportGroup{ID: 3, Term: 9}, ErrPlacement)
	c.refused(ReportGroup{ID: 1, Term: 9, Leader: "?"}, nil)
	c.refused(ReportGroup{ID: 1, Term: 9, Members: []Member{{"n1", "", true}}}, nil)
	c.refused(ReportGroup{ID: 1, Term: 9, Members: make([]Member, 2*MaxBrokers+1)}, nil)
	encoded(t, c.state)
}
