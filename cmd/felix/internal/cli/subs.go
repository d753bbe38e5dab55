package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/term"
)

type subsOptions struct {
	output   *choice
	sort     choice
	limit    int
	watch    bool
	interval time.Duration
	end      uint64
}

func (a *app) subsCommand() *cobra.Command {
	o := &subsOptions{sort: newChoice(admin.SortLag, admin.SortID, admin.SortDropped)}
	cmd := &cobra.Command{
		Use:   "subs [STREAM]",
		Short: "Show who reads, and who is slow",
		Long: `Show the readers of a stream, or of all streams, the one furthest behind first.

  live      reads the newest records as they come
  waiting   has everything there is
  behind    reads older records from the log
  blocked   has not taken what was sent for a while

LAG counts records that were committed and not sent to the reader; BATCHES and BYTES are what its bound is
held against, and "-" while it reads history, of which nobody has counted them. With --watch the table is
drawn anew every second; q or Ctrl-C ends it.

In a cluster these are the readers of the broker that is asked, which serves those of the shards that it leads
('felix stream describe' says who leads); --admin asks another one, and --end has to be asked of the same.`,
		Example: `  felix subs
  felix subs orders --watch
  felix subs --sort dropped -o json
  felix subs --end 42                                 # end one reader; its connection lives on`,
		Args: args(cobra.MaximumNArgs(1)),
	}
	a.connects(cmd)
	a.completes(cmd, 1)
	f := cmd.Flags()
	o.output = outputFlag(cmd)
	o.sort.register(cmd, "sort", "", "order of the rows")
	f.IntVar(&o.limit, "limit", 0, "show at most this many; 0: all")
	f.BoolVarP(&o.watch, "watch", "w", false, "go on, and show it anew every --interval")
	f.DurationVar(&o.interval, "interval", time.Second, "how often --watch asks")
	f.Uint64Var(&o.end, "end", 0, "end the reader with this id instead")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.interval < 100*time.Millisecond || o.limit < 0 {
			return usagef("--interval is at least 100ms, and --limit is not negative")
		}
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			if cmd.Flags().Changed("end") {
				return a.endReader(ctx, q, o.end)
			}
			query := admin.SubscriptionQuery{Sort: o.sort.value, Limit: o.limit}
			if len(args) > 0 {
				name, err := q.name(args[0])
				if err != nil {
					return err
				}
				query.Stream = name
			}
			fetch := func(ctx context.Context) (admin.SubscriptionList, error) {
				ctx, cancel := context.WithTimeout(ctx, askWithin)
				defer cancel()
				list, err := q.Subscriptions(ctx, query)
				if err != nil {
					return list, fmt.Errorf("list readers: %w", err)
				}
				return list, nil
			}
			if o.watch {
				return a.watchReaders(ctx, o, fetch)
			}
			list, err := fetch(ctx)
			if err != nil {
				return err
			}
			return a.printReaders(o, list)
		})
	}
	return cmd
}

func (a *app) endReader(ctx context.Context, q asking, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if err := q.EndSubscription(ctx, id); err != nil {
		return fmt.Errorf("end reader %d: %w", id, err)
	}
	_, err := fmt.Fprintf(a.env.Stdout, "ended reader %d\n", id)
	return err
}

func (a *app) printReaders(o *subsOptions, list admin.SubscriptionList) error {
	if o.output.value != "table" {
		return printAs(a.env.Stdout, o.output.value, list, nil)
	}
	if len(list.Subscriptions) == 0 {
		fmt.Fprintln(a.env.Stderr, "nobody reads, as far as this token may see")
		return nil
	}
	style := term.NewStyle(a.env.Stdout, a.env.Sources.Getenv)
	if err := readerTable(list, style).FitTo(a.env.Stdout).Write(a.env.Stdout); err != nil {
		return err
	}
	if hidden := list.Total - len(list.Subscriptions); hidden > 0 {
		fmt.Fprintf(a.env.Stderr, "and %d more\n", hidden)
	}
	return nil
}

// readerTable has first what says who is slow: a narrow terminal cuts the rest.
func readerTable(list admin.SubscriptionList, style term.Style) *term.Table {
	t := term.NewTable("STREAM", ">SHARD", ">ID", "STATE", ">LAG", ">DROPPED", "PRINCIPAL", "REMOTE", ">BATCHES", ">BYTES", ">NEXT", ">DELIVERED", "ON-FULL", "AGE")
	for _, s := range list.Subscriptions {
		dropped := fmt.Sprint(s.Dropped)
		if s.Dropped > 0 {
			dropped = style.Bad(dropped)
		}
		batches, bytes := fmt.Sprint(s.LagEntries), term.Bytes(s.LagBytes)
		if s.LagRecords > 0 && s.LagEntries == 0 {
			batches, bytes = "-", "-"
		}
		t.Row(showStream(s.Namespace, s.Stream), s.Shard, s.ID, paintState(style, s.State), s.LagRecords, dropped, s.Principal, s.Remote,
			batches, bytes, s.NextOffset, s.Delivered, s.OnFull, age(s.Since))
	}
	return t
}

func paintState(style term.Style, state string) string {
	switch state {
	case "blocked":
		return style.Bad(state)
	case "behind":
		return style.Warn(state)
	}
	return style.Good(state)
}

// readersText is one picture of `subs --watch`.
func readersText(list admin.SubscriptionList, err error, at time.Time, width int, style term.Style) string {
	var b strings.Builder
	states := map[string]int{}
	for _, s := range list.Subscriptions {
		states[s.State]++
	}
	fmt.Fprintf(&b, "%s   %s", style.Bold(at.Format(time.TimeOnly)), term.Plural(list.Total, "reader"))
	for _, state := range []string{"live", "waiting", "behind", "blocked"} {
		if n := states[state]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, paintState(style, state))
		}
	}
	b.WriteString("\n\n")
	if err != nil {
		b.WriteString(style.Bad(describe(err)) + "\n\n")
	}
	if len(list.Subscriptions) > 0 {
		b.WriteString(readerTable(list, style).Fit(width).String())
	}
	return b.String()
}
