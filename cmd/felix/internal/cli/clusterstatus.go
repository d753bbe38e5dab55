package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) clusterStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show brokers, groups, and what is on its way",
		Long: `Show the brokers of a cluster, its quorum groups and the shards that are on their way, as the broker that is
asked sees them.

SYNC says that everything that a broker holds is up to date; STOP, that no group loses its majority if the broker
stops now. Who restarts brokers one after the other waits for both. Group 0 is the metadata group, which keeps the
catalog. A member with + learns and does not vote yet, one with ! does not answer.`,
		Example: "  felix cluster status\n  felix cluster status -o json",
		Args:    args(cobra.NoArgs),
	}
	a.connects(cmd)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			st, err := q.ClusterStatus(ctx)
			if err != nil {
				return fmt.Errorf("show cluster: %w", err)
			}
			if output.value != "table" {
				return printAs(a.env.Stdout, output.value, st, nil)
			}
			return showCluster(a.env.Stdout, &st, term.NewStyle(a.env.Stdout, a.env.Sources.Getenv))
		})
	}
	return cmd
}

// showCluster draws a status for people.
func showCluster(w io.Writer, st *admin.ClusterStatus, style term.Style) error {
	leader := st.Leader
	if leader == "" {
		leader = style.Bad("nobody")
	}
	fmt.Fprintf(w, "cluster %s, metadata led by %s, as %s sees it\n", st.Cluster, leader, st.Asked)
	if st.Problem != "" {
		fmt.Fprintln(w, style.Bad(st.Problem))
	}
	fmt.Fprintln(w)
	tables := []*term.Table{brokerTable(st, style), groupTable(st, style)}
	if len(st.Moves) > 0 {
		tables = append(tables, moveTable(st, style))
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.FitTo(w).Write(w); err != nil {
			return err
		}
	}
	return nil
}

func brokerTable(st *admin.ClusterStatus, style term.Style) *term.Table {
	t := term.NewTable("BROKER", "STATE", "?ZONE", ">LEADS", ">REPLICAS", ">SHARDS", "VOTES", "SYNC", "STOP", "CLIENT", "PEER", "?VERSION", "?WHY")
	for i := range st.Brokers {
		b := &st.Brokers[i]
		why := b.Trouble
		if why == "" {
			why = strings.Join(b.Because, "; ")
		}
		t.Row(b.Node, brokerState(b, style), b.Zone, b.Leads, b.Replicas, b.Shards, yesNo(b.Voter), goodYes(style, b.InSync), goodYes(style, b.CanStop),
			b.Client, b.Peer, b.Version, why)
	}
	return t
}

func brokerState(b *admin.ClusterBroker, style term.Style) string {
	switch {
	case !b.Up:
		return style.Bad("away")
	case b.Draining && b.Holds():
		return style.Warn("draining")
	case b.Draining:
		return style.Warn("drained")
	}
	return style.Good("up")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func goodYes(style term.Style, b bool) string {
	if b {
		return style.Good("yes")
	}
	return style.Warn("no")
}

func groupTable(st *admin.ClusterStatus, style term.Style) *term.Table {
	t := term.NewTable(">GROUP", "LEADER", ">TERM", "MEMBERS", ">BEHIND", "?NEXT")
	for i := range st.Groups {
		g := &st.Groups[i]
		leader := g.Leader
		if leader == "" {
			leader = style.Bad("nobody")
		}
		var members, states []string
		behind := uint64(0)
		for _, m := range g.Members {
			name := m.Node
			switch {
			case !m.Up:
				name = style.Bad(name + "!")
			case !m.Voter:
				name = style.Warn(name + "+")
			}
			members = append(members, name)
			behind = max(behind, m.Lag)
			if m.State != "" {
				states = append(states, m.Node+": "+m.State)
			}
		}
		if g.Next != "" {
			states = append([]string{g.Next}, states...)
		}
		t.Row(g.Group, leader, g.Term, strings.Join(members, " "), behind, strings.Join(states, "; "))
	}
	return t
}

func moveTable(st *admin.ClusterStatus, style term.Style) *term.Table {
	t := term.NewTable("MOVING", ">SHARD", "FROM", "TO", "?PROBLEM")
	for _, m := range st.Moves {
		t.Row(m.String(), m.Shard, m.From, m.To, style.Bad(m.Problem))
	}
	return t
}
