package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/client"
)

// Bounds of the demonstration: small, so that a modest volume exceeds every window and buffer on the way.
const (
	stalledWindow = 64 << 10 // receive window of the reader that stalls
	healthyWindow = 2 << 20  // of the others
	queueBatches  = 32       // how far behind a reader may be
	queueBytes    = 2 << 20
	tailBytes     = 512 << 10 // less than the queue: a reader that catches up must read from disk
	batchBytes    = 64 << 10
	// slack is for what lies in sockets and in buffers of the two processes' ends.
	slack = 1 << 20

	// blockTimeout is how long a reader may hold a publisher up, and publishWait how long one publish waits before it
	// is told. The broker's own defaults are longer.
	blockTimeout = 1500 * time.Millisecond
	publishWait  = 400 * time.Millisecond

	// beforeStall is how many records the stalling reader takes first, to show that it was as good as the others.
	beforeStall = 32
)

// Policies are the overflow policies in the order they are shown in.
func Policies() []string {
	return []string{string(catalog.DropNew), string(catalog.CatchUp), string(catalog.Block)}
}

// SlowConfig shapes SlowConsumer. Zero values are the defaults in brackets.
type SlowConfig struct {
	// Policies to run, in this order (all).
	Policies []string
	// Records published for each policy (4096), and the bytes of each (4096).
	Records, Size int
	// Within bounds the run of one policy (60 s).
	Within time.Duration
	// Say is told what is going on (nobody).
	Say func(format string, args ...any)
	// Log gets the broker's log (none).
	Log *slog.Logger
}

func (c *SlowConfig) setDefaults() {
	if len(c.Policies) == 0 {
		c.Policies = Policies()
	}
	if c.Records == 0 {
		c.Records = 4096
	}
	if c.Size == 0 {
		c.Size = 4096
	}
	if c.Within == 0 {
		c.Within = time.Minute
	}
	if c.Say == nil {
		c.Say = func(string, ...any) {}
	}
}

// Validate reports everything that is wrong.
func (c SlowConfig) Validate() error {
	c.setDefaults()
	var errs []error
	for _, p := range c.Policies {
		if !slices.Contains(Policies(), p) {
			errs = append(errs, fmt.Errorf("policy %q: want one of %v", p, Policies()))
		}
	}
	if c.Size < minSize || c.Size > batchBytes {
		errs = append(errs, fmt.Errorf("records of %d bytes: want %d to %d", c.Size, minSize, batchBytes))
	} else if c.Records < minRecords(c.Size) {
		errs = append(errs, fmt.Errorf("%d records of %d bytes do not exceed all windows and buffers: at least %d are needed", c.Records, c.Size, minRecords(c.Size)))
	}
	if c.Within < 0 {
		errs = append(errs, fmt.Errorf("%v is no time to run in", c.Within))
	}
	return errors.Join(errs...)
}

// minRecords is how many records it takes to exceed twice what may be under way to a reader.
func minRecords(size int) int {
	batch := batchRecords(size)
	underWay := max(queueBytes, queueBatches*batch*size) + stalledWindow + slack
	return (2*underWay + size - 1) / size
}

// batchRecords is how many records make a batch.
func batchRecords(size int) int { return min(max(batchBytes/size, 1), 1024) }

// SlowConsumer runs the demonstration. The error is about what kept it from running; claims that did not hold are in
// the results.
func SlowConsumer(ctx context.Context, cfg SlowConfig) (results []Result, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	dir, err := os.MkdirTemp("", "felix-demo-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := startLocal(ctx, broker.Config{
		DataDir: dir, Listen: "127.0.0.1:0", Admin: broker.Admin{Disabled: true}, Log: cfg.Log,
		Streams: broker.StreamDefaults{BlockTimeout: broker.Duration(blockTimeout), PublishWait: broker.Duration(publishWait)},
		// The stalled reader is to meet the bound on its lag, not the one on time.
		Egress: broker.Egress{SlowConsumerTimeout: broker.Duration(10 * time.Minute)},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.stop(ctx)) }()
	for _, policy := range cfg.Policies {
		r, err := slowRun(ctx, l, cfg, policy)
		if err != nil {
			return results, fmt.Errorf("demo under %s: %w", policy, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// slowRun is one policy.
func slowRun(ctx context.Context, l *local, cfg SlowConfig, policy string) (r Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Within)
	defer cancel()
	name := admin.Name{Tenant: tenant, Namespace: namespace, Stream: "slow-" + policy}
	_, _, err = l.Admin().CreateStream(ctx, admin.StreamSpec{
		Name: name, Durability: string(catalog.Durable), TailBytes: tailBytes,
		Queue: admin.Queue{Entries: queueBatches, Bytes: queueBytes, OnFull: policy},
	}, "")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Admin().DeleteStream(context.WithoutCancel(ctx), name)) }()

	// The stalled reader has a connection of its own only because its window is smaller than theirs.
	fast, err := dial(ctx, l, healthyWindow)
	if err != nil {
		return r, err
	}
	defer func() { _ = fast.Close() }() // everything has been counted
	slow, err := dial(ctx, l, stalledWindow)
	if err != nil {
		return r, err
	}
	defer func() { _ = slow.Close() }() // as above

	stream := client.Stream{Namespace: name.Namespace, Name: name.Stream}
	readers := []*reader{
		{name: "healthy reader 1", client: fast},
		{name: "healthy reader 2", client: fast},
		{name: "stalled reader", client: slow, stallAfter: beforeStall, stalled: make(chan struct{}), release: make(chan struct{})},
	}
	stalled := readers[2]
	for _, rd := range readers {
		rd.stream, rd.want, rd.seen = stream, uint64(cfg.Records), make([]bool, cfg.Records)
		if err := rd.subscribe(ctx, client.Latest()); err != nil {
			return r, fmt.Errorf("%s: %w", rd.name, err)
		}
		defer rd.close()
	}

	cfg.Say("%s: publishing %d records of %d bytes to three readers; one stalls after %d", policy, cfg.Records, cfg.Size, beforeStall)
	group, ctx := errgroup.WithContext(ctx)
	for _, rd := range readers {
		group.Go(func() error {
			if err := rd.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", rd.name, err)
			}
			return nil
		})
	}
	p := publisher{records: cfg.Records, size: cfg.Size, say: cfg.Say}
	group.Go(func() error {
		if err := p.run(ctx, fast, stream); err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		seen, err := worstReader(ctx, l, name)
		if err != nil {
			return err
		}
		r.Seen = seen
		cfg.Say("%s: all is published; the stalled reader is %d records behind, and goes on now", policy, seen.LagRecords)
		close(stalled.release)
		return nil
	})
	if err := group.Wait(); err != nil {
		return r, err
	}
	r.Policy, r.Publisher = policy, p.result()
	for _, rd := range readers {
		r.Readers = append(r.Readers, rd.result())
	}
	r.check()
	return r, nil
}

func dial(ctx context.Context, l *local, window uint64) (*client.Client, error) {
	cfg, err := l.clientConfig(nil)
	if err != nil {
		return nil, err
	}
	cfg.StreamWindow, cfg.MaxSubscriptionsPerConn = window, 4
	return client.Dial(ctx, cfg)
}

// worstReader is what the broker says of the reader that is furthest behind.
func worstReader(ctx context.Context, l *local, name admin.Name) (Seen, error) {
	readers, err := l.Admin().Subscriptions(ctx, name)
	if err != nil {
		return Seen{}, err
	}
	var worst Seen
	for _, r := range readers {
		if r.LagRecords >= worst.LagRecords {
			worst = Seen{State: r.State, LagRecords: r.LagRecords}
		}
	}
	return worst, nil
}

// WriteResults prints the results side by side.
func WriteResults(w io.Writer, results []Result, paint Paint) error {
	_, err := io.WriteString(w, resultTable(results, paint))
	return err
}
