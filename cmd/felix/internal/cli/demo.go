package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"felix.dev/felix/cmd/felix/internal/demo"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) demoCommand() *cobra.Command {
	cmd := group("demo", "See what Felix does",
		"See what Felix does. Each demonstration starts a broker of its own, or several, and talks to it over QUIC.",
		"  felix demo hello\n  felix demo slow-consumer\n  felix demo failover")
	cmd.AddCommand(a.demoHello(), a.demoSlow(), a.demoFailover())
	return cmd
}

func (a *app) demoHello() *cobra.Command {
	cfg := demo.HelloConfig{}
	cmd := &cobra.Command{
		Use:   "hello",
		Short: "A publisher and two readers exchange records, and a broker to try things with",
		Long: `Start a broker in development mode, and have a publisher and two readers exchange records. Then print
commands to try, and go on until Ctrl-C. The data stays: the next time the reader from earliest begins with it.`,
		Example: "  felix demo hello\n  felix demo hello --data /tmp/felix --for 10s",
		Args:    args(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.StringVar(&cfg.DataDir, "data", "./data", "where the broker keeps everything")
	f.StringVar(&cfg.Listen, "listen", "", "UDP address for clients (default 127.0.0.1:5000, or a free port)")
	f.StringVar(&cfg.Admin, "admin", "", "TCP address of the HTTP admin (default 127.0.0.1:5001, or a free port)")
	f.DurationVar(&cfg.For, "for", 0, "end after this long; 0: at Ctrl-C")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cfg.For < 0 {
			return usagef("--for cannot be negative")
		}
		cfg.Out = a.env.Stdout
		cfg.Style = term.NewStyle(a.env.Stdout, a.env.Sources.Getenv)
		cfg.Suggest = func(file string) { a.suggest(a.env.Stdout, cfg.Style, file) }
		cfg.Log = slog.New(slog.NewTextHandler(a.env.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
		return demo.Hello(cmd.Context(), cfg)
	}
	return cmd
}

func (a *app) demoSlow() *cobra.Command {
	cfg := demo.SlowConfig{}
	cmd := &cobra.Command{
		Use:   "slow-consumer",
		Short: "Three readers, one stalls: DropNew, CatchUp and Block side by side",
		Long: `Publish to three readers, one of which stops reading, under each overflow policy. What is published is more
than all windows and buffers hold, so that the stall is felt:

  DropNew   the stalled reader is ended, is told exactly where to resume, and reads the rest from there
  CatchUp   the stalled reader goes on from the log when it can; nobody is ended
  Block     the publisher waits, is told why, and after a bound the stalled reader is ended as above

All of it is checked while it runs; if anything is not as promised the exit status is 1.`,
		Example: "  felix demo slow-consumer\n  felix demo slow-consumer --policy Block\n  felix demo slow-consumer --records 20000 --size 8192 -o json",
		Args:    args(cobra.NoArgs),
	}
	policy := newChoice(append([]string{"all"}, demo.Policies()...)...)
	policy.register(cmd, "policy", "", "which policy to run")
	output := newChoice("table", "json", "yaml")
	output.register(cmd, "output", "o", "how to print the results")
	f := cmd.Flags()
	f.IntVar(&cfg.Records, "records", 4096, "records to publish for each policy")
	f.IntVar(&cfg.Size, "size", 4096, "bytes of a record")
	verbose := f.Bool("verbose", false, "log what the broker does")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if policy.value != "all" {
			cfg.Policies = []string{policy.value}
		}
		cfg.Say, cfg.Log = a.demoSay(), a.demoLog(*verbose)
		if err := cfg.Validate(); err != nil {
			return &usageError{err}
		}
		results, err := demo.SlowConsumer(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if output.value != "table" {
			err = printAs(a.env.Stdout, output.value, results, nil)
		} else {
			err = demo.WriteResults(a.env.Stdout, results, term.NewStyle(a.env.Stdout, a.env.Sources.Getenv))
		}
		return errors.Join(err, notAsPromised(results))
	}
	return cmd
}

// demoSay tells, beside the results, what a demonstration does.
func (a *app) demoSay() func(format string, args ...any) {
	style := a.style()
	return func(format string, args ...any) {
		fmt.Fprintln(a.env.Stderr, style.Dim("# "+fmt.Sprintf(format, args...)))
	}
}

// demoLog is where a demonstration's brokers and clients log; nil: nowhere.
func (a *app) demoLog(verbose bool) *slog.Logger {
	if !verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(a.env.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// notAsPromised is the error of claims that did not hold; nil if all did.
func notAsPromised(results []demo.Result) error {
	var broken []string
	for _, r := range results {
		for _, claim := range r.Broken() {
			broken = append(broken, r.Policy+": "+claim)
		}
	}
	return brokenPromises(broken)
}

// brokenPromises is the error of claims that did not hold; nil if there are none.
func brokenPromises(broken []string) error {
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("%s not as promised: %s", term.Plural(len(broken), "thing"), strings.Join(broken, "; "))
}
