package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"felix.dev/felix/cmd/felix/internal/devcluster"
	"felix.dev/felix/cmd/felix/internal/settings"
	"felix.dev/felix/cmd/felix/internal/term"
)

type devClusterOptions struct {
	data    string
	brokers int
	port    int
	free    bool
	prepare bool
}

func (a *app) devClusterCommand() *cobra.Command {
	o := &devClusterOptions{}
	cmd := &cobra.Command{
		Use:   "dev-cluster",
		Short: "Run a cluster of brokers on this machine, ready to use",
		Long: `Run three brokers, or as many as --brokers says, as processes on this machine that are one cluster. Keys,
certificates, a token for the tenant "dev" and a context file are made, so that the other commands find the cluster by
themselves. Each broker logs to a file of its own.

They run until Ctrl-C, which ends all of them in good order. The data stays: the next time the cluster goes on with it. A
broker that ends by itself, or is killed, is not started again: that is what one may want to see.

With --prepare nothing is started: it makes the files, and prints the commands that would run the brokers.`,
		Example: `  felix dev-cluster
  felix dev-cluster --brokers 5
  felix stream create orders --durability Quorum   # then, in another terminal
  felix cluster status`,
		Args: args(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.StringVar(&o.data, "data", filepath.Join("data", "cluster"), "where everything is kept")
	f.IntVar(&o.brokers, "brokers", 3, "how many brokers")
	f.IntVar(&o.port, "port", 0, "the first broker's port for clients, and those that follow from it (default 5000, or free ports)")
	f.BoolVar(&o.free, "free-ports", false, "take any ports that are free")
	f.BoolVar(&o.prepare, "prepare", false, "make the files, and start nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.brokers < 1 {
			return usagef("--brokers: a cluster has at least one")
		}
		cfg := devcluster.Config{Dir: o.data, Brokers: o.brokers, Port: o.port, FreePorts: o.free}
		if err := cfg.Validate(); err != nil {
			return &usageError{err}
		}
		c, err := devcluster.Prepare(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if o.prepare {
			for _, b := range c.Brokers {
				fmt.Fprintf(a.env.Stdout, "%s serve --config %s\n", a.program(), b.ConfigFile())
			}
			return nil
		}
		return a.runCluster(cmd.Context(), c)
	}
	return cmd
}

// runCluster runs the brokers until ctx ends, or the last of them.
func (a *app) runCluster(ctx context.Context, c *devcluster.Cluster) (err error) {
	style := term.NewStyle(a.env.Stdout, a.env.Sources.Getenv)
	fmt.Fprintln(a.env.Stderr, a.style().Dim(fmt.Sprintf("# %s are starting", term.Plural(len(c.Brokers), "broker"))))
	if err := c.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(context.WithoutCancel(ctx))) }()
	if err := c.LeaveContext(settings.DevContext); err != nil {
		return err
	}
	a.introduceCluster(c, style)
	ended := make(chan *devcluster.Broker, len(c.Brokers))
	for _, b := range c.Brokers {
		go func() {
			<-b.Exited() // Stop sees to it
			ended <- b
		}()
	}
	for left := len(c.Brokers); left > 0; {
		select {
		case <-ctx.Done():
			fmt.Fprintln(a.env.Stderr, a.style().Dim("# the brokers are shutting down"))
			return nil
		case b := <-ended:
			left--
			why := "in good order"
			if err := b.Why(); err != nil {
				why = oneLine(err)
			}
			fmt.Fprintln(a.env.Stderr, a.style().Warn(fmt.Sprintf("broker %s has ended (%s); %d are left, its log is %s", b.Name, why, left, b.LogFile())))
		}
	}
	return errors.New("all brokers have ended")
}

// introduceCluster says what there is and what to try.
func (a *app) introduceCluster(c *devcluster.Cluster, style term.Style) {
	t := term.NewTable("BROKER", "RECORDS (QUIC)", "ADMIN", "PEERS", "PROCESS", "LOG")
	for _, b := range c.Brokers {
		t.Row(b.Name, b.Addr, b.Admin, b.Peer, fmt.Sprint(b.Pid()), relative(b.LogFile()))
	}
	program := a.program()
	fmt.Fprintf(a.env.Stdout, "%s\n\n%s\nTry, in another terminal:\n\n", style.Bold("A cluster is serving."), t)
	try := term.NewTable("  "+program+" stream create orders --durability Quorum", style.Dim("kept by a majority of the brokers"))
	for _, row := range [][2]string{
		{program + " sub orders --from earliest", "read it, whoever leads"},
		{"echo hello | " + program + " pub orders", "a record a line"},
		{program + " cluster status", "who is there, and who leads"},
		{fmt.Sprintf("kill -9 %d", c.Brokers[0].Pid()), "see what happens: broker " + c.Brokers[0].Name + " is gone"},
		{program + " demo failover", "the same, counted"},
	} {
		try.Row("  "+row[0], style.Dim(row[1]))
	}
	fmt.Fprintf(a.env.Stdout, "%s\n%s\n", try, style.Dim("the brokers run until Ctrl-C"))
}

// relative is a path as short as it can be said from here.
func relative(path string) string {
	here, err := filepath.Abs(".")
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && len(short) < len(path) {
		return short
	}
	return path
}
