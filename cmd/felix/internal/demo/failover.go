package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/devcluster"
)

// FailoverConfig shapes Failover. Zero values are the defaults in brackets.
type FailoverConfig struct {
	// Brokers is how many there are (3), Kills how often the leader is killed (1).
	Brokers, Kills int
	// For is how long is published (20 s). The kills are spread over it.
	For time.Duration
	// Size is the bytes of a record (256).
	Size int
	// Binary is felix (this one).
	Binary string
	// Keep leaves the brokers' files in this folder, where a cluster may have been before (a temporary one, removed).
	Keep string
	// Say is told what is going on (nobody).
	Say func(format string, args ...any)
	// Log gets the clients' log (none).
	Log *slog.Logger
}

// Bounds of the demonstration.
const (
	// perKill is the least time for a kill: to let acks come, to miss the broker, and to have it back.
	perKill = 8 * time.Second
	// ackAgain is how long it may take at most until publishes are acknowledged again. The design's aim is two seconds.
	ackAgain = 10 * time.Second
	// settleWithin bounds the wait for what is left when no more is published.
	settleWithin = 60 * time.Second
)

func (c *FailoverConfig) setDefaults() {
	if c.Brokers == 0 {
		c.Brokers = 3
	}
	if c.Kills == 0 {
		c.Kills = 1
	}
	if c.For == 0 {
		c.For = max(20*time.Second, time.Duration(c.Kills)*10*time.Second)
	}
	if c.Size == 0 {
		c.Size = 256
	}
	if c.Say == nil {
		c.Say = func(string, ...any) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// Validate reports everything that is wrong.
func (c FailoverConfig) Validate() error {
	c.setDefaults()
	var errs []error
	if c.Brokers < 3 {
		errs = append(errs, fmt.Errorf("%d brokers: at least 3 are needed to lose one", c.Brokers))
	}
	if c.Kills < 1 || c.For < time.Duration(c.Kills)*perKill {
		errs = append(errs, fmt.Errorf("%d kills in %v: at least one, and %v for each, are needed", c.Kills, c.For, perKill))
	}
	if c.Size < 2*minSize || c.Size > batchBytes {
		errs = append(errs, fmt.Errorf("records of %d bytes: want %d to %d", c.Size, 2*minSize, batchBytes))
	}
	return errors.Join(errs...)
}

// Failover starts a cluster of broker processes with a stream that a majority keeps, publishes and reads through different
// brokers, and kills the one that leads while doing so. The error is about what kept it from running; claims that did not
// hold are in the result.
func Failover(ctx context.Context, cfg FailoverConfig) (r FailoverResult, err error) {
	if err := cfg.Validate(); err != nil {
		return r, err
	}
	cfg.setDefaults()
	dir := cfg.Keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "felix-failover-"); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	c, err := devcluster.Prepare(ctx, devcluster.Config{Dir: dir, Brokers: cfg.Brokers, FreePorts: true, Binary: cfg.Binary})
	if err != nil {
		return r, err
	}
	cfg.Say("starting %d brokers", cfg.Brokers)
	if err := c.Start(ctx); err != nil {
		return r, err
	}
	settled := c.Settled(ctx)
	defer func() { err = errors.Join(err, c.Stop(context.WithoutCancel(ctx))) }()
	if settled != nil {
		return r, settled
	}
	f := &failover{cfg: cfg, cluster: c, stream: client.Stream{Namespace: namespace, Name: fmt.Sprintf("failover-%d", time.Now().Unix())}}
	defer f.close()
	if err := f.run(ctx); err != nil {
		return r, err
	}
	return f.result(), nil
}

// failover is one run.
type failover struct {
	cfg     FailoverConfig
	cluster *devcluster.Cluster
	stream  client.Stream

	publishers []*numberer
	readers    []*counter
	// after reads the whole log once more at the end, through each broker.
	after   []*counter
	kills   []Kill
	clients []*client.Client
}

func (f *failover) run(ctx context.Context) error {
	name := admin.Name{Tenant: devcluster.Tenant, Namespace: f.stream.Namespace, Stream: f.stream.Name}
	_, _, err := f.cluster.HTTP(f.cluster.Brokers[0]).CreateStream(ctx, admin.StreamSpec{Name: name, Durability: "Quorum"}, "")
	if err != nil {
		return fmt.Errorf("create a stream: %w", err)
	}
	if err := f.connect(ctx); err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	load := startLoad(work, cancel, f.publishers, f.readers)
	f.cfg.Say("publishing to %s through %s and %s, reading through %s and %s", f.stream,
		f.cluster.Brokers[0].Name, f.cluster.Brokers[1].Name, f.cluster.Brokers[1].Name, f.cluster.Brokers[2].Name)
	err = f.disturb(work)
	load.finish(work, settleWithin)
	if cause := context.Cause(work); ctx.Err() == nil && cause != nil && !errors.Is(cause, errEnough) {
		return cause
	}
	if err != nil {
		return err
	}
	f.cfg.Say("reading it all once more, through each broker")
	for i, b := range f.cluster.Brokers {
		again := &counter{name: "through " + b.Name, publishers: f.publishers}
		f.after = append(f.after, again)
		if err := again.subscribe(ctx, f.clients[i], f.stream); err != nil {
			return fmt.Errorf("read through broker %s: %w", b.Name, err)
		}
		reading, stop := context.WithTimeout(ctx, settleWithin)
		err := again.readTo(reading, f.publishers)
		stop()
		again.close()
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// connect makes a client for each broker, which comes in there and learns of the others, and what uses them.
func (f *failover) connect(ctx context.Context) error {
	addrs := f.cluster.Addrs()
	for i := range addrs {
		// The broker itself first, and then the others, as anybody would configure it.
		c, err := client.Dial(ctx, client.Config{
			Addrs: append(append([]string{}, addrs[i:]...), addrs[:i]...), Tenant: devcluster.Tenant, Token: f.cluster.Token,
			CAFile: f.cluster.CAFile, Log: f.cfg.Log,
		})
		if err != nil {
			return err
		}
		f.clients = append(f.clients, c)
	}
	for i := range 2 {
		p := &numberer{source: uint32(i + 1), size: f.cfg.Size, name: "publisher through " + f.cluster.Brokers[i].Name}
		if err := p.open(f.clients[i], f.stream); err != nil {
			return err
		}
		f.publishers = append(f.publishers, p)
	}
	for i := range 2 {
		r := &counter{name: "reader through " + f.cluster.Brokers[i+1].Name, publishers: f.publishers}
		if err := r.subscribe(ctx, f.clients[i+1], f.stream); err != nil {
			return err
		}
		f.readers = append(f.readers, r)
	}
	return nil
}

func (f *failover) close() {
	for _, r := range f.readers {
		r.close()
	}
	for _, c := range f.clients {
		_ = c.Close() // everything has been counted
	}
}

// disturb kills leaders, in equal parts of the time, and has each back in between.
func (f *failover) disturb(ctx context.Context) error {
	part := f.cfg.For / time.Duration(f.cfg.Kills)
	for n := range f.cfg.Kills {
		begin := time.Now()
		if err := pause(ctx, part/4); err != nil {
			return err
		}
		leader, err := f.leader(ctx)
		if err != nil {
			return err
		}
		k := Kill{Node: leader.Name, InFlight: f.manyInFlight(ctx)}
		f.cfg.Say("killing broker %s, which leads, with %d publishes in flight", leader.Name, k.InFlight)
		at := time.Now()
		leader.Kill()
		next, err := f.nextAck(ctx, at)
		if err != nil {
			return err
		}
		k.NextAck = Millis(next)
		k.Leader = f.newLeader(ctx, leader.Name)
		f.kills = append(f.kills, k)
		f.cfg.Say("acknowledged again after %v, broker %s leads", next.Round(time.Millisecond), k.Leader)
		if err := pause(ctx, part/8); err != nil {
			return err
		}
		f.cfg.Say("starting broker %s again", leader.Name)
		back, cancel := context.WithTimeout(ctx, settleWithin)
		err = errors.Join(leader.Start(), leader.Ready(back))
		cancel()
		if err != nil {
			return err
		}
		if n == f.cfg.Kills-1 || time.Since(begin) < part {
			if err := pause(ctx, part-time.Since(begin)); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
