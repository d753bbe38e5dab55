package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := group("cluster", "Look at a cluster, and move what its brokers hold",
		`Look at a cluster and look after it, through the admin address of any of its brokers.

Looking needs stream.manage or tenant.manage on "cluster", changing needs tenant.manage, in a token of the
system's tenant (auth.system_tenant of the brokers). All of these commands can be repeated: what is done
already is a success.`,
		`  felix cluster status
  felix cluster drain felix-3                     # have it give away everything; shows how far it has come
  felix cluster remove felix-3                    # then take it out for good
  felix cluster transfer 4 felix-1                # have felix-1 lead group 4
  felix cluster move 4 --from felix-2 --to felix-5`)
	cmd.AddCommand(a.clusterStatus(), a.clusterDrain(), a.clusterUndrain(), a.clusterRemove(), a.clusterMove(), a.clusterTransfer(),
		a.clusterBalance(), a.clusterCerts())
	return cmd
}

// pollEvery is how often a command that waits asks how far things have come.
const pollEvery = time.Second

// clusterWait are the flags of commands that start something that takes its time.
type clusterWait struct {
	noWait bool
	within time.Duration
}

func newClusterWait(cmd *cobra.Command) *clusterWait {
	w := &clusterWait{}
	cmd.Flags().BoolVar(&w.noWait, "no-wait", false, "do not wait until it is done")
	cmd.Flags().DurationVar(&w.within, "timeout", 0, "how long to wait; it goes on in the cluster. 0: until it is done")
	return w
}

// change asks for a change of the cluster. The same request id serves all attempts.
func (a *app) change(ctx context.Context, what string, do func(ctx context.Context, requestID string) error) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if err := do(ctx, rand.Text()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// progressOf says in one line how far something has come, and whether that was it.
type progressOf func(admin.ClusterStatus) (line string, done bool)

// followCluster shows on standard error how far something has come, a line whenever there is news, until it is done.
func (a *app) followCluster(ctx context.Context, q asking, w *clusterWait, what string, progress progressOf) (admin.ClusterStatus, error) {
	if w.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.within)
		defer cancel()
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	said := ""
	for {
		st, line, done, err := a.askProgress(ctx, q, progress)
		switch {
		case err != nil:
			return st, fmt.Errorf("%s: %w", what, err)
		case done:
			return st, nil
		case line != said:
			said = line
			fmt.Fprintln(a.env.Stderr, line)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return st, stillGoing(ctx, what, said)
		}
	}
}

// askProgress asks once. That the broker cannot answer now is news like any other: what was begun goes on without it.
func (a *app) askProgress(ctx context.Context, q asking, progress progressOf) (st admin.ClusterStatus, line string, done bool, err error) {
	ask, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	st, err = q.ClusterStatus(ask)
	if err == nil {
		line, done = progress(st)
		return st, line, done, nil
	}
	var refused *admin.Error
	if errors.As(err, &refused) && refused.Retry == admin.RetryFatal {
		return st, "", false, err
	}
	return st, "the broker that was asked does not answer: " + oneLine(err), false, nil
}

// stillGoing says that nobody waits any more, which changes nothing for the cluster.
func stillGoing(ctx context.Context, what, said string) error {
	text := what + " is not done yet and goes on in the cluster"
	if said != "" {
		text += " (" + said + ")"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", text, context.DeadlineExceeded)
	}
	return &interruptedError{text}
}

// completesBrokers makes the shell complete a command's first argument with the names of brokers.
func (a *app) completesBrokers(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.brokerNames(cmd), cobra.ShellCompDirectiveNoFileComp
	}
}

// brokerNames are the brokers of the cluster; none, which is no error, if it cannot be asked.
func (a *app) brokerNames(cmd *cobra.Command) []string {
	var names []string
	_ = a.ask(cmd.Context(), func(ctx context.Context, q asking) error { // see above
		ctx, cancel := context.WithTimeout(ctx, completeWithin)
		defer cancel()
		st, err := q.ClusterStatus(ctx)
		for _, b := range st.Brokers {
			names = append(names, b.Node)
		}
		return err
	})
	return names
}

// brokerOf finds a broker in a status; nil: there is none of this name.
func brokerOf(st *admin.ClusterStatus, node string) *admin.ClusterBroker {
	for i := range st.Brokers {
		if st.Brokers[i].Node == node {
			return &st.Brokers[i]
		}
	}
	return nil
}

// groupIn finds a group in a status; nil: there is none with this number.
func groupIn(st *admin.ClusterStatus, id uint32) *admin.ClusterGroup {
	for i := range st.Groups {
		if st.Groups[i].Group == id {
			return &st.Groups[i]
		}
	}
	return nil
}

func parseGroup(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, usagef("group %q: want a number, as felix cluster status shows them", text)
	}
	return uint32(n), nil
}
