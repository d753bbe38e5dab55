package catalog

import (
	"fmt"
	"slices"
)

func (SetTargets) kind() Kind { return "set_targets" }

func (c SetTargets) apply(t *transition) error {
	for _, target := range c.Targets {
		have := t.next.groups[target.ID]
		switch {
		case have == nil:
			return fmt.Errorf("catalog: set targets: %w: there is no group %d", ErrPlacement, target.ID)
		case len(target.Nodes) == 0 || len(target.Nodes) > MaxReplicas:
			return fmt.Errorf("catalog: set targets of group %d: %w: %d brokers: 1 to %d", target.ID, ErrPlacement, len(target.Nodes), MaxReplicas)
		}
		for i, node := range target.Nodes {
			if t.old.brokers[node] == nil || slices.Contains(target.Nodes[:i], node) {
				return fmt.Errorf("catalog: set targets of group %d: %w: broker %q is not there, or twice", target.ID, ErrPlacement, node)
			}
		}
		if !slices.Equal(have.Target, target.Nodes) {
			g := *have
			g.Target = slices.Clone(target.Nodes)
			t.setGroup(g)
		}
	}
	return nil
}

func (ReportGroup) kind() Kind { return "report_group" }

func (c ReportGroup) apply(t *transition) error {
	have := t.old.groups[c.ID]
	switch {
	case have == nil:
		return fmt.Errorf("catalog: report group %d: %w: there is no such group", c.ID, ErrPlacement)
	case c.Term < have.Term:
		return fmt.Errorf("catalog: report group %d: %w: term %d after %d", c.ID, ErrStale, c.Term, have.Term)
	case len(c.Members) > 2*MaxBrokers || c.Leader != "" && !nodePattern.MatchString(c.Leader):
		return fmt.Errorf("catalog: report group %d: %d members, leader %.80q", c.ID, len(c.Members), c.Leader)
	}
	for _, m := range c.Members {
		if !nodePattern.MatchString(m.Node) || !instancePattern.MatchString(m.Instance) {
			return fmt.Errorf("catalog: report group %d: member %.80q, instance %.80q", c.ID, m.Node, m.Instance)
		}
	}
	g := *have
	g.Term, g.Leader, g.Members = c.Term, c.Leader, slices.Clone(c.Members)
	if g.Term != have.Term || g.Leader != have.Leader || !slices.Equal(g.Members, have.Members) {
		t.setGroup(g)
	}
	return nil
}
