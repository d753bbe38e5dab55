package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) streamCommand() *cobra.Command {
	cmd := group("stream", "Create, list, describe, change and delete streams",
		"Create, list, describe, change and delete the streams of a broker, through its admin address.",
		`  felix stream create orders --durability Durable --retain-bytes 10GiB
  felix stream list
  felix stream describe orders
  felix stream update orders --on-full CatchUp
  felix stream delete orders`)
	cmd.AddCommand(a.streamCreate(), a.streamList(), a.streamDescribe(), a.streamUpdate(), a.streamDelete())
	return cmd
}

func (a *app) streamCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create STREAM",
		Short: "Create a stream",
		Long: `Create a stream. It may be repeated: a stream that is there already with the same settings is a success.

A Durable stream is on disk, and what was acknowledged survives kill -9 and power loss. A Memory
stream keeps its newest records in memory and loses them with the broker. In a cluster, a Quorum
stream is on the disks of several brokers: what was acknowledged survives the loss of any minority
of them, and publishing goes on without them.`,
		Example: `  felix stream create orders
  felix stream create shop/orders --shards 4 --retain-age 168h
  felix stream create ticks --durability Memory --tail-bytes 128MiB`,
		Args: args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	s := newStreamFlags(cmd, true)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.shards == 0 {
			return usagef("--shards 0: a stream has at least one")
		}
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			name, err := q.name(args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			st, created, err := q.CreateStream(ctx, s.spec(name), rand.Text())
			if err != nil {
				return fmt.Errorf("create %s: %w", showStream(name.Namespace, name.Stream), err)
			}
			if output.value != "table" {
				return printAs(a.env.Stdout, output.value, st, nil)
			}
			verb := "created"
			if !created {
				verb = "is there already with these settings:"
			}
			_, err = fmt.Fprintf(a.env.Stdout, "%s %s (%s, %s)\n", verb, showStream(name.Namespace, name.Stream),
				st.Spec.Durability, term.Plural(len(st.Shards), "shard"))
			return err
		})
	}
	return cmd
}

func (a *app) streamList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List streams",
		Example: "  felix stream list\n  felix stream list --namespace shop -o json",
		Args:    args(cobra.NoArgs),
	}
	a.connects(cmd)
	namespace := cmd.Flags().String("namespace", "", "only the streams of this namespace")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			streams, err := q.Streams(ctx, q.tenant, *namespace)
			if err != nil {
				return fmt.Errorf("list streams: %w", err)
			}
			if streams == nil {
				streams = []admin.Stream{} // [] in JSON, not null
			}
			if len(streams) == 0 && output.value == "table" {
				hint := "'felix stream create NAME' makes one"
				if why := tokenTrouble(q.settings, time.Now()); why != "" {
					hint = why
				}
				fmt.Fprintln(a.env.Stderr, "there are no streams that this token may see; "+hint)
				return nil
			}
			return printAs(a.env.Stdout, output.value, streams, func() *term.Table { return streamTable(streams) })
		})
	}
	return cmd
}

func (a *app) streamDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe STREAM", Aliases: []string{"get"}, Short: "Show a stream's settings and shards",
		Example: "  felix stream describe orders\n  felix stream describe shop/orders -o yaml",
		Args:    args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	a.completes(cmd, 1)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.askStream(cmd, args[0], func(_ context.Context, _ asking, st admin.Stream) error {
			if output.value != "table" {
				return printAs(a.env.Stdout, output.value, st, nil)
			}
			return describeStream(a.env.Stdout, st)
		})
	}
	return cmd
}

func (a *app) streamUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update STREAM", Short: "Change settings of a stream",
		Long: `Change settings of a stream while it is in use. What is not given stays as it is. The number of
shards can only grow; name, durability and routing never change.`,
		Example: "  felix stream update orders --retain-bytes 50GiB --on-full CatchUp\n  felix stream update orders --shards 8",
		Args:    args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	a.completes(cmd, 1)
	s := newStreamFlags(cmd, false)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !s.changed() {
			return usagef("nothing to change: give at least one setting")
		}
		return a.askStream(cmd, args[0], func(ctx context.Context, q asking, before admin.Stream) error {
			after, err := q.UpdateStream(ctx, before.Spec.Name, s.change(before.Spec))
			if err != nil {
				return err
			}
			if output.value != "table" {
				return printAs(a.env.Stdout, output.value, after, nil)
			}
			return describeStream(a.env.Stdout, after)
		})
	}
	return cmd
}

// askStream asks about the one stream that arg names; errors say which and what for.
func (a *app) askStream(cmd *cobra.Command, arg string, then func(context.Context, asking, admin.Stream) error) error {
	return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
		name, err := q.name(arg)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		st, err := q.Stream(ctx, name)
		if err == nil {
			err = then(ctx, q, st)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", cmd.Name(), showStream(name.Namespace, name.Stream), err)
		}
		return nil
	})
}

func (a *app) streamDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete STREAM...", Aliases: []string{"rm"}, Short: "Delete streams with all their records",
		Long: `Delete streams with all their records. Readers get what they have not been sent yet, and then the end.
A stream that is created under the same name later is another one: old offsets are refused there.`,
		Example: "  felix stream delete orders\n  felix stream delete shop/a shop/b --if-exists",
		Args:    args(cobra.MinimumNArgs(1)),
	}
	a.connects(cmd)
	a.completes(cmd, 100)
	ifExists := cmd.Flags().Bool("if-exists", false, "a stream that is not there is no error")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.ask(cmd.Context(), func(ctx context.Context, q asking) error {
			names := make([]admin.Name, 0, len(args))
			for _, arg := range args {
				name, err := q.name(arg)
				if err != nil {
					return err
				}
				names = append(names, name)
			}
			for _, name := range names {
				ctx, cancel := context.WithTimeout(ctx, askWithin)
				err := q.DeleteStream(ctx, name)
				cancel()
				shown := showStream(name.Namespace, name.Stream)
				if *ifExists && errors.Is(err, &admin.Error{Code: admin.CodeNotFound}) {
					fmt.Fprintln(a.env.Stderr, "there is no "+shown)
					continue
				}
				if err != nil {
					return fmt.Errorf("delete %s: %w", shown, err)
				}
				if _, err := fmt.Fprintln(a.env.Stdout, "deleted "+shown); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}
