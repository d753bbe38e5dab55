package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"felix.dev/felix/cmd/felix/internal/demo"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) demoFailover() *cobra.Command {
	cfg := demo.FailoverConfig{}
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Three brokers, one stream, and the leader is killed: what is acknowledged is kept",
		Long: `Start three brokers that are one cluster, make a stream that a majority of them keeps, publish to it and read it
through different brokers, and kill -9 the broker that leads it while 64 publishes of each publisher are in flight. Then start
it again. At the end the stream is read once more, through each broker.

It is counted what was acknowledged, delivered, lost and repeated, and how long nothing was acknowledged. If anything is not
as promised the exit status is 1.`,
		Example: "  felix demo failover\n  felix demo failover --kills 10 --for 2m\n  felix demo failover -o json",
		Args:    args(cobra.NoArgs),
	}
	output := newChoice("table", "json", "yaml")
	output.register(cmd, "output", "o", "how to print the results")
	f := cmd.Flags()
	f.IntVar(&cfg.Brokers, "brokers", 3, "how many brokers")
	f.IntVar(&cfg.Kills, "kills", 1, "how often the leader is killed")
	f.DurationVar(&cfg.For, "for", 0, "how long to publish; the kills are spread over it (default 20s, or 10s for each kill)")
	f.IntVar(&cfg.Size, "size", 256, "bytes of a record")
	f.StringVar(&cfg.Keep, "keep", "", "folder to leave the brokers' files and logs in (default: they are removed)")
	verbose := f.Bool("verbose", false, "log what the clients do")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg.Say, cfg.Log = a.demoSay(), a.demoLog(*verbose)
		if err := cfg.Validate(); err != nil {
			return &usageError{err}
		}
		result, err := demo.Failover(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if output.value != "table" {
			err = printAs(a.env.Stdout, output.value, result, nil)
		} else {
			err = demo.WriteFailover(a.env.Stdout, result, term.NewStyle(a.env.Stdout, a.env.Sources.Getenv))
		}
		return errors.Join(err, brokenPromises(result.Broken()))
	}
	return cmd
}
