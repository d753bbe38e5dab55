package cli

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/client"
)

type subOptions struct {
	from     client.Start
	shard    int // -1: all
	output   string
	count    uint64
	timeout  time.Duration
	toEnd    bool
	noResume bool
	skipLost bool
	quiet    bool
}

func (a *app) subCommand() *cobra.Command {
	o := &subOptions{}
	cmd := &cobra.Command{
		Use:   "sub STREAM",
		Short: "Read a stream and print its records",
		Long: `Read a stream and print its records. STREAM is NAME or NAMESPACE/NAME.

Reading goes on by itself after a lost connection or when the broker has ended it because this
reader was too slow, without a gap and without a repeat; standard error tells. Without --shard all
shards are read; records of different shards come in no particular order.

Output: text ends each record with a line feed, raw adds nothing, json prints one object a line with
offset, shard and payload (payload_base64 if the record is no UTF-8 text).`,
		Example: `  felix sub orders                                    # from now on
  felix sub orders --from earliest
  felix sub orders --from 1200 --count 10 -o json
  felix sub orders --from earliest --to-end > all.txt # what there is, then end`,
		Args: args(cobra.ExactArgs(1)),
	}
	a.connects(cmd)
	a.completes(cmd, 1)
	f := cmd.Flags()
	from := f.String("from", "latest", "where to begin: latest, earliest or an offset")
	f.IntVar(&o.shard, "shard", -1, "read this shard only; -1: all")
	output := newChoice("text", "json", "raw")
	output.register(cmd, "output", "o", "how to print records")
	asJSON := f.Bool("json", false, "the same as --output json")
	f.Uint64VarP(&o.count, "count", "n", 0, "end after this many records; 0: do not")
	f.DurationVar(&o.timeout, "timeout", 0, "end when no record has come for this long; 0: do not")
	f.BoolVar(&o.toEnd, "to-end", false, "end at what was the end of the stream when reading began")
	f.BoolVar(&o.noResume, "no-resume", false, "end with an error instead of going on after a lost connection or a lag notice")
	f.BoolVar(&o.skipLost, "skip-lost", false, "go on at the oldest record kept if what comes next is not kept any more")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no notices, no progress and no summary")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stream, err := parseStream(args[0])
		if err != nil {
			return err
		}
		if o.from, err = parseStart(*from); err != nil {
			return err
		}
		o.output = output.value
		if *asJSON {
			o.output = "json"
		}
		if o.timeout < 0 || o.shard < -1 {
			return usagef("--timeout and --shard cannot be negative")
		}
		return a.sub(cmd.Context(), stream, o)
	}
	return cmd
}

func parseStart(s string) (client.Start, error) {
	switch s {
	case "latest":
		return client.Latest(), nil
	case "earliest":
		return client.Earliest(), nil
	}
	offset, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return client.Start{}, usagef("--from %q: want latest, earliest or an offset", s)
	}
	return client.At(offset), nil
}

func (a *app) sub(ctx context.Context, stream client.Stream, o *subOptions) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	shards, err := shardsToRead(ctx, c, stream, o)
	if err != nil {
		return err
	}
	r := newReading(a, stream, o)
	err = r.run(ctx, c, shards)
	r.finish()
	if err == nil || r.got > 0 {
		r.notice("%s", r.summary())
	}
	if err != nil || o.count == 0 || r.got >= o.count || ctx.Err() != nil {
		return err
	}
	return &shortError{got: r.got, want: o.count, why: r.ended}
}

// shardsToRead asks for the number of shards, unless one was named.
func shardsToRead(ctx context.Context, c *client.Client, stream client.Stream, o *subOptions) ([]uint32, error) {
	if o.shard >= 0 {
		return []uint32{uint32(o.shard)}, nil
	}
	all, err := c.Shards(ctx, stream)
	var unsupported *client.UnsupportedError
	switch {
	case errors.As(err, &unsupported): // an older broker: it knows of one shard only
		all.Count = 1
	case err != nil:
		return nil, err
	}
	if all.Count > 1 && o.from != client.Latest() && o.from != client.Earliest() {
		return nil, usagef("%s has %d shards, each with offsets of its own: --from with an offset needs --shard", showStream(stream.Namespace, stream.Name), all.Count)
	}
	shards := make([]uint32, max(all.Count, 1))
	for i := range shards {
		shards[i] = uint32(i)
	}
	return shards, nil
}
