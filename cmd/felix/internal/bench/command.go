package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"felix.dev/felix/cmd/felix/internal/settings"
)

// NewCommand is `felix bench`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a broker: throughput, latency, drops, what it costs",
		Long: `Measure a broker. Each scenario starts a broker in a process of its own, puts a load on it, checks every
delivery, and prints what it found. With --addr or --context it loads a broker that is already running.

A run fails, whatever its speed, if a record is missing that nobody has reported as dropped, or comes twice, out
of order or damaged, and if a healthy reader was dropped though the publisher waits for the slowest one.`,
	}
	cmd.AddCommand(
		scenarioCommand(scenarioFanout, "Deliver each record to many subscriptions, as fast as the slowest one reads",
			params{Size: 4096, Fanout: 10, Duration: seconds(2 * time.Second), Warmup: seconds(500 * time.Millisecond)}),
		scenarioCommand(scenarioPublish, "Publish with acknowledgements and nobody reading",
			params{Size: 256, Fanout: 1, Publishers: 64, Duration: seconds(2 * time.Second), Warmup: seconds(500 * time.Millisecond)}),
		scenarioCommand(scenarioLatency, "Time records from publish to delivery, at a fixed rate or in a closed loop",
			params{Size: 256, Fanout: 1, Rate: 500, Duration: seconds(2 * time.Second), Warmup: seconds(500 * time.Millisecond)}),
		scenarioCommand(scenarioSlow, "Compare healthy readers with and without stalled ones beside them",
			params{Size: 4096, Fanout: 1000, Stalled: 100, Window: 512 << 10, Volume: 1 << 20, Baseline: true, Duration: seconds(2 * time.Second)}),
		scenarioCommand(scenarioIdleCluster, "Weigh a cluster whose streams nobody uses",
			params{
				Size: 256, Durability: durabilityQuorum, Streams: 1000,
				Duration: seconds(20 * time.Second), Warmup: seconds(10 * time.Second),
			}),
		scenarioCommand(scenarioIdle, "Weigh subscriptions that nothing is sent to",
			params{Size: 256, Fanout: 10000, Duration: seconds(time.Second)}),
		compareCommand(),
		brokerCommand(),
	)
	return cmd
}

// options are the flags that are no parameters of the load.
type options struct {
	params
	external externalFlags
	broker   brokerOptions
	// loadProfile is of this process.
	loadProfile string
	json        string
	plot        bool
}

// scenarioCommand runs a scenario; def has its defaults where they are its own.
func scenarioCommand(name, short string, def params) *cobra.Command {
	o := &options{params: def}
	o.Scenario = name
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  o.takeFile,
	}
	o.addFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.Validate(); err != nil {
			return &UsageError{err}
		}
		return o.run(cmd.Context(), cmd)
	}
	return cmd
}

// takeFile makes `--json FILE` mean what `--json=FILE` does, though --json alone
// writes to the standard output.
func (o *options) takeFile(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && o.json == "-":
		o.json = args[0]
		return nil
	}
	return &UsageError{fmt.Errorf("%s takes no arguments, have %q", cmd.CommandPath(), args)}
}

func (o *options) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.IntVar(&o.Size, "size", o.Size, "bytes of a record")
	f.IntVar(&o.Batch, "batch", 0, "records of a publish frame (0: the client library's default)")
	f.IntVar(&o.Fanout, "fanout", o.Fanout, "subscriptions of each stream")
	f.IntVar(&o.Conns, "conns", 0, "clients that the subscriptions, or in publish the publishers, are spread over (0: one)")
	f.IntVar(&o.Streams, "streams", max(o.Streams, 1), "streams")
	f.IntVar(&o.Publishers, "publishers", max(o.Publishers, 1), "publishers of each stream")
	f.IntVar(&o.Inflight, "inflight", 1, "records under way of each publisher, where they are counted: publish, and latency without --rate")
	f.IntVar(&o.Rate, "rate", o.Rate, "latency: records published in a second, on time whatever happens (0: closed loop)")
	f.BoolVar(&o.Acked, "acked", false, "publish with acknowledgements, which nobody waits for (publish always does, and waits)")
	f.StringVar(&o.Durability, "durability", cmp.Or(o.Durability, durabilityMemory), "memory, durable, or quorum: then the broker is a cluster")
	f.IntVar(&o.Brokers, "brokers", 3, "quorum: brokers of the cluster, each in a process")
	f.StringVar(&o.Through, "through", throughLeader, "quorum: the broker that is connected to: leader, or follower, which forwards")
	f.StringVar(&o.Fsync, "fsync", fsyncAlways, "of a durable stream: always or interval")
	f.StringVar(&o.OnFull, "on-full", onFullDrop, "what happens to a subscriber that is too slow: drop-new, block or catch-up")
	f.IntVar(&o.Queue, "queue", 0, "entries by which a subscriber may lag (0: default, or more if the window needs it)")
	f.IntVar(&o.Stalled, "stalled", o.Stalled, "of the fan-out, subscriptions that are not read until the measured part is over")
	f.DurationVar((*time.Duration)(&o.Duration), "duration", time.Duration(o.Duration), "measured time of publishing")
	f.DurationVar((*time.Duration)(&o.Warmup), "warmup", time.Duration(o.Warmup), "publishing before that")
	f.Int64Var(&o.Volume, "volume", o.Volume, "go on until so many bytes are published on each stream")
	f.IntVar(&o.Window, "window", cmp.Or(o.Window, 4<<20), "bytes published but not delivered to the slowest healthy subscriber (16 records at least)")
	if o.Scenario == scenarioSlow {
		f.BoolVar(&o.Baseline, "baseline", o.Baseline, "measure the healthy readers alone first")
	}
	f.IntVar(&o.Procs, "procs", 0, "GOMAXPROCS of the broker (0: default)")
	f.Uint64Var(&o.Seed, "seed", 0, "of the records' content (0: another one each time)")

	f.StringVar(&o.json, "json", "", "write the report as JSON to a file; without one, to the standard output")
	f.Lookup("json").NoOptDefVal = "-"
	f.BoolVar(&o.plot, "plot", false, "plot latency over time")
	f.StringVar(&o.broker.cpuProfile, "cpuprofile", "", "write a CPU profile of the broker over the measured part; of a cluster, FILE.n1, ...")
	f.StringVar(&o.broker.memProfile, "memprofile", "", "write a heap profile of the broker at the end of it")
	f.StringVar(&o.loadProfile, "load-cpuprofile", "", "write a CPU profile of the load itself")
	f.StringVar(&o.broker.config, "config", "", "configuration file of the broker, but not of a cluster; addresses and data directory are the bench's own")
	f.StringVar(&o.broker.dir, "dir", "", "where the broker's data directory is made, and removed (default: the temporary directory)")

	f.StringVar(&o.external.stream, "stream", "", "with --addr or --context: a stream that is there and that nobody else uses; with --streams, what comes before -0, -1, ... (default: some are made, with --admin)")
	f.IntVar(&o.external.pid, "broker-pid", 0, "with --addr or --context: the broker's process, if it is on this machine")
	o.external.Register(f)
}

func (o *options) run(ctx context.Context, cmd *cobra.Command) error {
	if o.Seed == 0 {
		o.Seed = rand.Uint64() >> 11 //nolint:gosec // content of records; JSON numbers hold 53 bits
	}
	b := &bench{p: o.params, version: version(cmd), plot: o.plot, say: newProgress(os.Stderr)}
	// Only flags, and no variable or context file that happens to be there, may name
	// a broker to put a load on.
	if f := cmd.Flags(); f.Changed("addr") || f.Changed("context") {
		b.start = func(context.Context) (target, error) { return o.external.target(settings.SystemSources()) }
	} else {
		command, err := brokerArgs(cmd, &o.broker)
		if err != nil {
			return err
		}
		var env []string
		if o.Procs > 0 {
			env = append(env, "GOMAXPROCS="+strconv.Itoa(o.Procs))
		}
		b.start = func(ctx context.Context) (target, error) { return startProcess(ctx, command, env) }
		if o.Durability == durabilityQuorum {
			b.start = func(ctx context.Context) (target, error) { return o.startCluster(ctx, cmd, env) }
		}
	}
	load := &observer{cpuProfile: o.loadProfile}
	if err := load.begin(); err != nil {
		return fmt.Errorf("bench: profile of the load: %w", err)
	}
	r, err := b.run(ctx)
	err = errors.Join(err, load.end())
	if ctx.Err() != nil {
		return context.Cause(ctx) // half a run says nothing
	}
	if r == nil {
		return err
	}
	return errors.Join(o.print(cmd, r), err)
}

func (o *options) print(cmd *cobra.Command, r *report) error {
	out := cmd.OutOrStdout()
	if o.plot {
		plotLatency(cmd.ErrOrStderr(), r.p50Series, r.p99Series, time.Duration(o.Duration))
	}
	if o.json != "-" {
		r.writeSummary(out)
	}
	if o.json == "" {
		return nil
	}
	return r.writeJSON(o.json, out)
}

// brokerArgs is the command that starts the broker: this program again.
func brokerArgs(cmd *cobra.Command, o *brokerOptions) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	// The path of the parent command, without the program's own name.
	path := strings.Fields(cmd.Parent().CommandPath())[1:]
	return append(append([]string{exe}, path...), o.args()...), nil
}

// startCluster starts a cluster of this program.
func (o *options) startCluster(ctx context.Context, cmd *cobra.Command, env []string) (target, error) {
	return startCluster(ctx, &o.params, func(config, node string) ([]string, error) {
		b := brokerOptions{member: config}
		if o.broker.cpuProfile != "" {
			b.cpuProfile = o.broker.cpuProfile + "." + node
		}
		if o.broker.memProfile != "" {
			b.memProfile = o.broker.memProfile + "." + node
		}
		return brokerArgs(cmd, &b)
	}, env, o.broker.dir)
}

// version is that of the program.
func version(cmd *cobra.Command) string {
	if v := cmd.Root().Version; v != "" {
		return v
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

func compareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare A.json B.json",
		Short: "Put two reports side by side",
		Long: `Put two reports side by side. A file may hold several reports of one scenario, one after another; then their
medians are compared.

On a shared machine single runs differ by a third for no reason. hack/ab.sh runs two revisions in turn and
tests whether they differ.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &UsageError{fmt.Errorf("got %d, want two reports: A.json B.json", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return compare(cmd.OutOrStdout(), args[0], args[1])
		},
	}
}
