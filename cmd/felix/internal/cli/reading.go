package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/term"
)

// Ways for reading to end that are no failure.
var (
	errEnough = errors.New("all records wanted")
	errIdle   = errors.New("no record came in time")
)

// shortError is the end of a reader that was to read more. Trying again helps if more is published.
type shortError struct {
	got, want uint64
	why       string
}

func (e *shortError) Error() string {
	return fmt.Sprintf("read %d of %s: %s", e.got, term.Plural(e.want, "record"), e.why)
}

// Retryable says that more may come.
func (e *shortError) Retryable() bool { return true }

// reading is one run of `felix sub`: a goroutine for each shard, and what they share.
type reading struct {
	stream client.Stream
	opts   *subOptions
	style  term.Style
	app    *app
	begin  time.Time
	ended  string // why, if by itself

	mu       sync.Mutex // guards what follows, and the order of lines on both outputs
	out      *bufio.Writer
	printer  printer
	progress *term.Progress
	history  uint64 // records below the live offsets that were not read yet
	got      uint64
	bytes    uint64
	gaps     uint64
	next     map[uint32]uint64
	idle     *time.Timer // nil without a timeout
}

func newReading(a *app, stream client.Stream, o *subOptions) *reading {
	return &reading{
		stream: stream, opts: o, style: a.style(), app: a, begin: time.Now(), next: map[uint32]uint64{},
		out: bufio.NewWriterSize(a.env.Stdout, 64<<10), printer: newPrinter(o.output),
	}
}

// notice tells the person something on standard error.
func (r *reading) notice(format string, args ...any) {
	if !r.opts.quiet {
		fmt.Fprintf(r.app.env.Stderr, "%s\n", r.style.Dim(fmt.Sprintf("# "+format, args...)))
	}
}

func (r *reading) run(ctx context.Context, c *client.Client, shards []uint32) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if r.opts.timeout > 0 {
		r.idle = time.AfterFunc(r.opts.timeout, func() { end(errIdle) })
		defer r.idle.Stop()
	}
	subs := make([]*client.Subscription, 0, len(shards))
	defer func() {
		for _, s := range subs {
			_ = s.Close() // it is over in any case
		}
	}()
	for _, shard := range shards {
		s, err := c.Subscribe(ctx, r.stream, r.subscribeConfig(shard))
		if err != nil {
			return r.outcome(ctx, err)
		}
		subs = append(subs, s)
	}
	r.expect(subs)
	group, groupCtx := errgroup.WithContext(ctx)
	for i, s := range subs {
		group.Go(func() error { return r.shard(groupCtx, s, shards[i]) })
	}
	return r.outcome(ctx, group.Wait())
}

// outcome tells an end that was asked for from a failure.
func (r *reading) outcome(ctx context.Context, err error) error {
	asked := ctx.Err() != nil && errors.Is(err, context.Canceled) // Ctrl-C is how one ends a reader
	switch cause := context.Cause(ctx); {
	case err == nil:
		r.ended = "this was the end of the stream"
	case errors.Is(err, errEnough):
	case errors.Is(err, io.EOF):
		r.ended = "the stream was deleted"
		r.notice("%s", r.ended)
	case errors.Is(cause, errIdle):
		r.ended = fmt.Sprintf("none has come for %s", term.Duration(r.opts.timeout))
	case asked:
	default:
		return err
	}
	return nil
}

func (r *reading) subscribeConfig(shard uint32) client.SubscribeConfig {
	of := ""
	if shard > 0 {
		of = fmt.Sprintf(" of shard %d", shard)
	}
	return client.SubscribeConfig{
		Start: r.opts.from, Shard: shard, NoReconnect: r.opts.noResume, SkipLost: r.opts.skipLost,
		OnLagged: func(from, position uint64) {
			r.notice("too slow: the broker ended the reading%s at offset %d; going on at %d", of, from, position)
		},
		OnLost: func(err error) { r.notice("lost%s: %s", of, oneLine(err)) },
		OnResumed: func(g client.Resumed) {
			r.notice("going on%s at offset %d after %s and %s", of, g.Position, term.Duration(g.Down), term.Plural(g.Attempts, "attempt"))
		},
		OnGap: func(from, to uint64) { r.notice("offsets %d to %d%s are missing", from, to-1, of) },
	}
}

// expect sets up the progress line for a long history. On a terminal that shows the records themselves it would be
// in their way.
func (r *reading) expect(subs []*client.Subscription) {
	for _, s := range subs {
		if s.HasOffsets() && s.LiveOffset() > s.StartOffset() {
			r.history += s.LiveOffset() - s.StartOffset()
		}
	}
	r.progress = term.NewProgress(r.app.env.Stderr, "history", int64(r.history))
	if r.opts.quiet || r.history == 0 || term.IsTerminal(r.app.env.Stdout) {
		r.progress.Done()
	}
}

func (r *reading) shard(ctx context.Context, s *client.Subscription, shard uint32) error {
	live := s.LiveOffset()
	for !r.opts.toEnd || s.HasOffsets() && s.Position() < live {
		events, err := s.NextBatch(ctx)
		if err != nil {
			return err
		}
		if r.opts.toEnd {
			events = below(events, live)
		}
		if err := r.take(s, shard, events); err != nil {
			return err
		}
	}
	return nil
}

// below cuts off the events at or past an offset.
func below(events []client.Event, end uint64) []client.Event {
	for i, e := range events {
		if e.HasOffset && e.Offset >= end {
			return events[:i]
		}
	}
	return events
}

// take prints a batch and hands it to the system at once: whoever reads the pipe is not to wait for more.
func (r *reading) take(s *client.Subscription, shard uint32, events []client.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle != nil {
		r.idle.Reset(r.opts.timeout)
	}
	printed := 0
	for _, e := range events {
		if r.opts.count > 0 && r.got == r.opts.count {
			break
		}
		if err := r.printer.print(r.out, shard, e); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		printed++
		r.got++
		r.bytes += uint64(len(e.Payload))
		r.gaps += e.Gap
		if e.HasOffset {
			r.next[shard] = e.Offset + 1
		}
	}
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	if r.history > 0 {
		n := min(uint64(printed), r.history)
		r.progress.Add(int(n))
		if r.history -= n; r.history == 0 || s.Position() >= s.LiveOffset() && len(r.next) == 1 {
			r.progress.Done()
		}
	}
	if r.opts.count > 0 && r.got == r.opts.count {
		return errEnough
	}
	return nil
}

func (r *reading) finish() {
	if r.progress != nil {
		r.progress.Done()
	}
}

func nextOffset(shard uint32, next uint64) string {
	if shard > 0 {
		return fmt.Sprintf(", next offset %d of shard %d", next, shard)
	}
	return fmt.Sprintf(", next offset %d", next)
}

func (r *reading) summary() string {
	took := time.Since(r.begin)
	var b strings.Builder
	fmt.Fprintf(&b, "read %s (%s) from %s in %s", term.Plural(r.got, "record"), term.Bytes(r.bytes),
		showStream(r.stream.Namespace, r.stream.Name), term.Duration(took))
	if len(r.next) == 1 {
		for shard, next := range r.next {
			b.WriteString(nextOffset(shard, next))
		}
	}
	if r.gaps > 0 {
		fmt.Fprintf(&b, ", %s missing", term.Plural(r.gaps, "record"))
	}
	return b.String()
}
