package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) clusterDrain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drain BROKER", Short: "Have a broker give away everything that it holds",
		Long: `Have a broker give away its leaderships, its replicas and the shards that only it has, and wait until it holds
nothing. How far it has come is shown on standard error. It takes nothing new until it is undrained. Ctrl-C ends the
waiting only; 'felix cluster undrain' ends the draining.`,
		Example: "  felix cluster drain felix-3\n  felix cluster drain felix-3 --timeout 10m -o json",
		Args:    args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	a.completesBrokers(cmd)
	wait, output := newClusterWait(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		node := args[0]
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			if err := a.change(ctx, "drain "+node, func(ctx context.Context, id string) error { return q.DrainBroker(ctx, node, id) }); err != nil {
				return err
			}
			if wait.noWait {
				_, err := fmt.Fprintf(a.env.Stdout, "draining %s\n", node)
				return err
			}
			st, err := a.followCluster(ctx, q, wait, "drain "+node, drainProgress(node))
			if err != nil {
				return err
			}
			if output.value != "table" {
				return printAs(a.env.Stdout, output.value, brokerOf(&st, node), nil)
			}
			_, err = fmt.Fprintf(a.env.Stdout, "drained %s: it holds nothing\n", node)
			return err
		})
	}
	return cmd
}

// drainProgress says what a broker still holds.
func drainProgress(node string) progressOf {
	return func(st admin.ClusterStatus) (string, bool) {
		b := brokerOf(&st, node)
		if b == nil {
			return "", true // removed meanwhile
		}
		if !b.Holds() {
			return "", true
		}
		line := fmt.Sprintf("%s still holds %s", node, holdsText(b))
		var waits []string
		for i := range st.Groups {
			if g := &st.Groups[i]; g.Next != "" && involves(g, node) {
				waits = append(waits, fmt.Sprintf("group %d: %s", g.Group, g.Next))
			}
		}
		for _, m := range st.Moves {
			if m.From == node && m.Problem != "" {
				waits = append(waits, fmt.Sprintf("shard %d of %s: %s", m.Shard, m.Name, m.Problem))
			}
		}
		const most = 3
		if len(waits) > most {
			waits = append(waits[:most], fmt.Sprintf("and %d more", len(waits)-most))
		}
		if len(waits) > 0 {
			line += "; " + strings.Join(waits, "; ")
		}
		return line, false
	}
}

func involves(g *admin.ClusterGroup, node string) bool {
	for _, m := range g.Members {
		if m.Node == node {
			return true
		}
	}
	return false
}

func holdsText(b *admin.ClusterBroker) string {
	var what []string
	for _, c := range []struct {
		n    int
		what string
	}{{b.Replicas, "replica"}, {b.Leads, "leadership"}, {b.Shards, "shard"}} {
		if c.n > 0 {
			what = append(what, term.Plural(c.n, c.what))
		}
	}
	if b.Voter {
		what = append(what, "a vote on the catalog")
	}
	return strings.Join(what, ", ")
}

func (a *app) clusterUndrain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "undrain BROKER", Short: "Have a broker that was drained take part again",
		Example: "  felix cluster undrain felix-3",
		Args:    args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	a.completesBrokers(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		node := args[0]
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			if err := a.change(ctx, "undrain "+node, func(ctx context.Context, id string) error { return q.UndrainBroker(ctx, node, id) }); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.env.Stdout, "%s takes part again\n", node)
			return err
		})
	}
	return cmd
}

func (a *app) clusterRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove BROKER", Aliases: []string{"rm"}, Short: "Take a broker out of the cluster, for good",
		Long: `Take a broker out of the cluster, for good. Drain it first: removing is refused while it holds anything, and while
the catalog would be without a majority. The broker is told and stops; it may join again with an empty data directory.

A broker that will never come back can be drained and removed, too. Shards that only it has go nowhere, though:
--force gives them up.`,
		Example: "  felix cluster remove felix-3\n  felix cluster remove felix-3 --force          # its disk is lost",
		Args:    args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	a.completesBrokers(cmd)
	force := cmd.Flags().Bool("force", false, "give up the shards that only this broker has")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		node := args[0]
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			if err := a.change(ctx, "remove "+node, func(ctx context.Context, id string) error { return q.RemoveBroker(ctx, node, *force, id) }); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.env.Stdout, "removed %s\n", node)
			return err
		})
	}
	return cmd
}
