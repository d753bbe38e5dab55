package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/term"
)

type pubOptions struct {
	input
	publisher client.PublisherConfig
	rate      float64
	quiet     bool
}

func (a *app) pubCommand() *cobra.Command {
	o := &pubOptions{}
	var key string
	cmd := &cobra.Command{
		Use:   "pub STREAM [RECORD...]",
		Short: "Publish records: arguments, lines of files or of standard input",
		Long: `Publish records to a stream. STREAM is NAME or NAMESPACE/NAME.

Without arguments and files every line of standard input is a record. Each is acknowledged by the
broker unless --unacked is given; on a durable stream acknowledged means on disk. Publishing stops
at the first record that is refused.`,
		Example: `  felix pub orders hello world                        # two records
  printf 'one\ntwo\n' | felix pub orders              # a record a line
  felix pub shop/orders --file orders.jsonl --idempotent
  felix pub images --file cat.png --whole             # the file is the record
  felix pub orders --key customer-7 '{"n":1}'         # the key chooses the shard
  seq 1000000 | felix pub orders --rate 1000`,
		Args: args(cobra.MinimumNArgs(1)),
	}
	a.connects(cmd)
	a.completes(cmd, 1)
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "read records from this file, - is standard input; may be repeated")
	f.BoolVar(&o.whole, "whole", false, "a file is one record instead of one a line")
	f.Float64Var(&o.rate, "rate", 0, "records a second; 0: as fast as possible")
	f.StringVar(&key, "key", "", "routing key of all records")
	f.StringVar(&o.separator, "key-separator", "", "a record's own key stands before the first occurrence of this")
	f.IntVar(&o.publisher.MaxBatchRecords, "batch", 0, "most records in a batch; 0: 64")
	f.DurationVar(&o.publisher.Linger, "linger", 0, "how long a batch that is not full waits for more")
	f.BoolVar(&o.publisher.Unacked, "unacked", false, "ask for no acknowledgement: faster, and the broker may drop records under load")
	f.BoolVar(&o.publisher.Idempotent, "idempotent", false, "send again after a lost connection, without repeats")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no summary")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stream, err := parseStream(args[0])
		if err != nil {
			return err
		}
		o.args = args[1:]
		o.key, o.keyed = []byte(key), cmd.Flags().Changed("key")
		o.stdin = a.env.Stdin
		if err := o.validate(); err != nil {
			return err
		}
		return a.pub(cmd.Context(), stream, o)
	}
	return cmd
}

func (o *pubOptions) validate() error {
	switch {
	case o.keyed && o.separator != "":
		return usagef("--key and --key-separator exclude each other")
	case len(o.args) > 0 && len(o.files) > 0:
		return usagef("records are given as arguments or with --file, not both")
	case o.publisher.Unacked && o.publisher.Idempotent:
		return usagef("--unacked and --idempotent exclude each other")
	case o.rate < 0, o.publisher.Linger < 0, o.publisher.MaxBatchRecords < 0:
		return usagef("--rate, --linger and --batch cannot be negative")
	}
	return nil
}

// closeWithin is how long a publisher that was told to stop waits for the answers that it is owed.
const closeWithin = 30 * time.Second

func (a *app) pub(ctx context.Context, stream client.Stream, o *pubOptions) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // everything that matters has been answered
	p, err := c.NewPublisher(stream, o.publisher)
	if err != nil {
		return err
	}
	typed := len(o.args) == 0 && len(o.files) == 0 && term.IsTerminal(a.env.Stdin)
	if typed && !o.quiet {
		fmt.Fprintln(a.env.Stderr, a.style().Dim("every line is a record; Ctrl-D ends"))
	}
	progress := term.NewProgress(a.env.Stderr, "publishing", -1)
	if !o.quiet && !typed {
		defer progress.Done()
	} else {
		progress.Done()
	}

	t := newTally(progress)
	err = t.feed(ctx, p, o)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	closeErr := p.Close(closing)
	t.wait()
	progress.Done()
	if !o.quiet && (t.acked > 0 || t.failed == 0 && err == nil) {
		fmt.Fprintln(a.env.Stderr, t.summary(stream, o))
	}
	switch {
	case t.failed > 0:
		return fmt.Errorf("publish to %s: %s, the first: %w", stream, term.Plural(t.failed, "record")+" not acknowledged", t.first)
	case errors.Is(err, context.Canceled) && typed:
		return nil // Ctrl-C is how many people end what they type
	case errors.Is(err, context.Canceled):
		return &interruptedError{"interrupted before the end of the input"}
	case err != nil:
		return err
	}
	return closeErr
}
