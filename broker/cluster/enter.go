package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// sayAfter is how often it is logged what a broker that starts waits for.
const sayAfter = 10 * time.Second

// enter makes this broker part of its cluster and returns once it has the catalog.
func (c *Cluster) enter(ctx context.Context) error {
	book := c.cfg.Book
	c.wg.Go(c.followCatalog)
	switch cluster, founding := book.Cluster(), book.founding(); {
	case founding:
		return c.found(ctx, cluster)
	case cluster != "":
		return c.rejoin(ctx)
	}
	if c.cfg.Found {
		others, err := c.askToFound(ctx)
		if err != nil {
			return err
		}
		if !others {
			return c.found(ctx, "")
		}
	}
	index, err := c.register(ctx)
	if err != nil {
		return err
	}
	if err := c.openMetadata(ctx, false); err != nil {
		return err
	}
	return c.arrive(ctx, index)
}

// rejoin goes on where this broker was before it was restarted.
func (c *Cluster) rejoin(ctx context.Context) error {
	if err := c.openMetadata(ctx, false); err != nil {
		return err
	}
	if last := c.meta.Load().State().Last; last == 0 && c.cfg.Book.settled() {
		return refuse(CodeDamaged, "this broker was in cluster %s, and its part of the metadata group is gone: "+
			"restore the data directory from a copy, or remove all of it to have the broker join as a new one", c.cfg.Book.Cluster())
	}
	index, err := c.register(ctx)
	if err != nil {
		return err
	}
	return c.arrive(ctx, index)
}

// arrive waits until the catalog is here that the metadata leader has.
func (c *Cluster) arrive(ctx context.Context, index uint64) error {
	say := time.NewTicker(sayAfter)
	defer say.Stop()
	for {
		at, more := c.machine.progress()
		if at >= index {
			return c.cfg.Book.settle()
		}
		select {
		case <-more:
		case <-say.C:
			c.cfg.Log.Info("waiting for the catalog", "index", at, "wanted", index)
		case <-ctx.Done():
			return fmt.Errorf("wait for the catalog (have %d of %d): %w", at, index, context.Cause(ctx))
		}
	}
}

func (c *Cluster) openMetadata(ctx context.Context, bootstrap bool) error {
	cfg := quorum.GroupConfig{Machine: c.machine, OnLeader: c.metadataLed}
	if bootstrap {
		cfg.Bootstrap = []quorum.Server{c.cfg.Self}
	}
	g, err := c.cfg.Node.Open(ctx, catalog.MetadataGroup, cfg)
	if err != nil {
		return fmt.Errorf("open metadata group: %w", err)
	}
	c.meta.Store(g)
	c.replicas.adopt(catalog.MetadataGroup, g)
	c.learnLeaders()
	return nil
}

// metadataLed is told when this broker begins or ceases to lead the metadata
// group.
func (c *Cluster) metadataLed(l quorum.Leadership) {
	c.cfg.Log.Info("leadership of the metadata group", "leading", l.Leading, "term", l.Term)
	c.led(catalog.MetadataGroup)
	c.steward.wake.now()
}

// askToFound asks every address of the join list whether there is a cluster. It
// returns when one says so, or when all have said that they belong to none. Who
// does not answer may be the one who knows: it is asked until it does.
func (c *Cluster) askToFound(ctx context.Context) (others bool, err error) {
	missing := slices.Clone(c.cfg.Join)
	said := time.Time{}
	for {
		var waiting []string
		for _, addr := range missing {
			a, err := c.hello(ctx, addr)
			switch {
			case err != nil:
				waiting = append(waiting, fmt.Sprintf("%s: %v", addr, err))
				continue
			case a.Cluster != "":
				c.cfg.Log.Info("there is a cluster", "cluster", a.Cluster, "broker", a.Node)
				return true, nil
			case a.Founds && a.Node != c.cfg.Self.Node && a.Node < c.cfg.Self.Node:
				waiting = append(waiting, fmt.Sprintf("%s: broker %s is to found the cluster, too, and comes first", addr, a.Node))
			}
		}
		if len(waiting) == 0 {
			return false, nil
		}
		if time.Since(said) > sayAfter {
			said = time.Now()
			c.cfg.Log.Info("asking whether there is a cluster already", "waiting", strings.Join(waiting, "; "))
		}
		if err := c.pause(ctx); err != nil {
			return false, fmt.Errorf("found cluster: not everybody has said that there is none: %s: %w", strings.Join(waiting, "; "), err)
		}
	}
}

func (c *Cluster) hello(ctx context.Context, addr string) (helloAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Call)
	defer cancel()
	var a helloAnswer
	err := c.cfg.Peer.CallAddr(ctx, addr, methodHello, struct{}{}, &a)
	return a, err
}

// pause waits a little before something is tried again.
func (c *Cluster) pause(ctx context.Context) error {
	t := time.NewTimer(jittered(c.cfg.Timings.Retry))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// found makes a cluster of this broker. It goes on with one that was being founded
// when the broker was stopped.
func (c *Cluster) found(ctx context.Context, cluster string) error {
	if cluster == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // it never fails
		cluster = hex.EncodeToString(b[:])
		if err := c.cfg.Book.enter(cluster, c.cfg.Self, true); err != nil {
			return err
		}
	}
	if err := c.openMetadata(ctx, true); err != nil {
		return err
	}
	single := c.cfg.Import
	if single == nil {
		single = catalog.New()
	}
	commands, err := catalog.Founding(catalog.FoundCluster{Cluster: cluster, Settings: c.cfg.Settings, Founder: c.cfg.Broker}, single)
	if err != nil {
		return err
	}
	for _, cmd := range commands {
		r, err := c.insist(ctx, cmd)
		if err == nil {
			err = r.Err
		}
		if err != nil {
			return fmt.Errorf("found cluster %s: %w", cluster, err)
		}
	}
	c.cfg.Log.Info("founded a cluster", "cluster", cluster, "broker", c.cfg.Self.String())
	return c.cfg.Book.settle()
}

// insist proposes until there is an outcome.
func (c *Cluster) insist(ctx context.Context, cmd catalog.Command) (catalog.Result, error) {
	for {
		try, cancel := context.WithTimeout(ctx, c.cfg.Timings.Propose)
		r, err := c.Propose(try, cmd)
		cancel()
		if err == nil || final(err) || ctx.Err() != nil {
			return r, err
		}
		c.cfg.Log.Info("waiting for the metadata group", "error", err)
		if err := c.pause(ctx); err != nil {
			return catalog.Result{}, err
		}
	}
}

// followCatalog has the book and the table of leaders follow the catalog.
func (c *Cluster) followCatalog() {
	for {
		changed := c.Changed()
		if st := c.State(); st.Cluster() != "" {
			if err := c.cfg.Book.record(positions(st)); err != nil {
				c.cfg.Log.Error("what this broker remembers of the others could not be written down", "error", err)
			}
			c.around.follow()
			c.learnLeaders()
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return
		}
	}
}

func positions(st *catalog.State) map[string]position {
	out := make(map[string]position)
	for _, b := range st.Brokers() {
		out[b.NodeID] = position{Instance: b.Instance, Peer: b.Peer}
	}
	return out
}
