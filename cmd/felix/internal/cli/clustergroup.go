package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) clusterMove() *cobra.Command {
	cmd := &cobra.Command{
		Use: "move GROUP", Short: "Move a replica of a group to another broker",
		Long: `Move a replica of a group to another broker, and wait until it is there: the new one learns, catches up and votes,
and only then the old one goes. A replica of another group may go the other way, so that the brokers hold about as
much as each other.`,
		Example: "  felix cluster move 4 --from felix-2 --to felix-5",
		Args:    args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	from := cmd.Flags().String("from", "", "the broker that the replica leaves")
	to := cmd.Flags().String("to", "", "the broker that takes it")
	for _, flag := range []string{"from", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.brokerNames(cmd), cobra.ShellCompDirectiveNoFileComp
		}) // fails only for a flag that does not exist
	}
	wait := newClusterWait(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseGroup(args[0])
		switch {
		case err != nil:
			return err
		case *from == "" || *to == "" || *from == *to:
			return usagef("want --from and --to, two brokers")
		}
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			what := fmt.Sprintf("move group %d from %s to %s", id, *from, *to)
			err := a.change(ctx, what, func(ctx context.Context, request string) error { return q.MoveReplica(ctx, id, *from, *to, request) })
			if err != nil {
				return err
			}
			if wait.noWait {
				_, err = fmt.Fprintf(a.env.Stdout, "moving group %d to %s\n", id, *to)
				return err
			}
			if _, err = a.followCluster(ctx, q, wait, what, moveProgress(id, *from, *to)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.env.Stdout, "moved group %d from %s to %s\n", id, *from, *to)
			return err
		})
	}
	return cmd
}

// moveProgress says how far a replica has come.
func moveProgress(id uint32, from, to string) progressOf {
	return func(st admin.ClusterStatus) (string, bool) {
		g := groupIn(&st, id)
		if g == nil {
			return fmt.Sprintf("group %d is not known", id), false
		}
		line := fmt.Sprintf("group %d: %s is to join", id, to)
		there := false
		for _, m := range g.Members {
			if m.Node != to {
				continue
			}
			if there = m.Voter; there {
				line = fmt.Sprintf("group %d: %s is there, %s has to go", id, to, from)
			} else {
				line = fmt.Sprintf("group %d: %s catches up, %d entries to go", id, to, m.Lag)
			}
		}
		if g.Next != "" && !strings.Contains(g.Next, "catches up") {
			line += "; " + g.Next
		}
		return line, there && !involves(g, from)
	}
}

func (a *app) clusterTransfer() *cobra.Command {
	cmd := &cobra.Command{
		Use: "transfer GROUP [BROKER]", Short: "Have another broker lead a group",
		Long: `Have another broker lead a group: one of its voters that has caught up. Without a broker it is the one that should lead
the group.`,
		Example: "  felix cluster transfer 4 felix-1\n  felix cluster transfer 4",
		Args:    args(cobra.RangeArgs(1, 2)),
	}
	a.connects(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.brokerNames(cmd), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseGroup(args[0])
		if err != nil {
			return err
		}
		to, whom := "", "the broker that should lead it"
		if len(args) > 1 {
			to, whom = args[1], args[1]
		}
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			what := fmt.Sprintf("transfer group %d to %s", id, whom)
			if err := a.change(ctx, what, func(ctx context.Context, request string) error { return q.TransferLeader(ctx, id, to, request) }); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.env.Stdout, "group %d is led by %s\n", id, whom)
			return err
		})
	}
	return cmd
}

func (a *app) clusterBalance() *cobra.Command {
	cmd := &cobra.Command{
		Use: "balance", Short: "Have every group led by the broker that should lead it",
		Long: `Have every group led by the broker that should lead it, if that is there and has caught up. The cluster does so by
itself, more gently.`,
		Example: "  felix cluster balance",
		Args:    args(cobra.NoArgs),
	}
	a.connects(cmd)
	wait := newClusterWait(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			if err := a.change(ctx, "balance", q.BalanceLeaders); err != nil {
				return err
			}
			if wait.noWait {
				_, err := fmt.Fprintln(a.env.Stdout, "balancing")
				return err
			}
			st, err := a.followCluster(ctx, q, wait, "balance", balanceProgress)
			if err != nil {
				return err
			}
			var parts []string
			for _, b := range st.Brokers {
				parts = append(parts, fmt.Sprintf("%s leads %d", b.Node, b.Leads))
			}
			_, err = fmt.Fprintf(a.env.Stdout, "balanced: %s\n", strings.Join(parts, ", "))
			return err
		})
	}
	return cmd
}

// balanceProgress counts the groups that another broker should and could lead.
func balanceProgress(st admin.ClusterStatus) (string, bool) {
	n := 0
	for i := range st.Groups {
		if g := &st.Groups[i]; g.Leader != shouldLead(&st, g) {
			n++
		}
	}
	return fmt.Sprintf("%s to be led by another broker", term.Plural(n, "group")), n == 0
}

// shouldLead is the first of a group's brokers that could lead it now, or who leads it if none could.
func shouldLead(st *admin.ClusterStatus, g *admin.ClusterGroup) string {
	for _, node := range g.Target {
		b := brokerOf(st, node)
		if b == nil || b.Draining {
			continue
		}
		for _, m := range g.Members {
			if m.Node == node && m.Voter && m.Up && m.CaughtUp && m.State == "" {
				return node
			}
		}
	}
	return g.Leader
}
