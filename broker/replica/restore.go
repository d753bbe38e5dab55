package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// openAtOnce is how many logs are opened, or flushed, at a time.
const openAtOnce = 8

// Recover implements quorum.Machine: it opens the shards of the newest manifest. A
// shard whose log is damaged or lacks records is opened all the same, and repaired from
// other brokers.
func (g *Group) Recover(b []byte) error {
	if b == nil {
		return nil
	}
	m, err := parseManifest(g.cfg.Group, b)
	if err != nil {
		return err
	}
	g.nextSlot = m.nextSlot
	shards := make([]*shard, len(m.shards))
	var all errgroup.Group
	all.SetLimit(openAtOnce)
	for i := range m.shards {
		all.Go(func() (err error) {
			e := &m.shards[i]
			if shards[i], err = g.open(e.Opening, e.slot, e.state); err != nil {
				return fmt.Errorf("replica: group %d: open shard %s: %w", g.cfg.Group, e.Key, err)
			}
			shards[i].trimLog()
			return nil
		})
	}
	err = all.Wait()
	for _, s := range shards {
		switch {
		case s == nil:
		case err != nil:
			_ = s.CloseLog() // nothing was done with it
		default:
			g.add(s)
		}
	}
	return err
}

// Restore implements quorum.Machine: it fetches what the manifest has and this broker
// lacks, shard by shard, and then puts all shards where it says. What was fetched stays
// if it is interrupted.
func (g *Group) Restore(index uint64, b []byte, from quorum.Server) error {
	m, err := parseManifest(g.cfg.Group, b)
	if err != nil {
		return err
	}
	began := time.Now()
	g.cfg.Log.Info("catching up from another broker", "from", from.Node, "entry", index, "shards", len(m.shards))
	shards := make([]*shard, len(m.shards))
	var fresh []*shard
	for i := range m.shards {
		e := &m.shards[i]
		s := g.find(e.Key)
		if s == nil {
			if s, err = g.open(e.Opening, e.slot, stream.ReplicaState{First: e.First, Next: e.First, Oldest: e.First}); err != nil {
				err = fmt.Errorf("open it: %w", err)
			} else {
				fresh = append(fresh, s)
			}
		}
		if err == nil {
			err = s.install(g.ctx, &e.state, index, from.Node)
		}
		if err != nil {
			for _, s := range fresh { // nobody has seen them
				_ = s.CloseLog()
			}
			return fmt.Errorf("replica: group %d: catch up from %s: shard %s: %w", g.cfg.Group, from.Node, e.Key, err)
		}
		shards[i] = s
	}
	g.begun.Store(index)
	if err := g.adopt(m, shards); err != nil {
		return err
	}
	g.applied.Store(index)
	g.cfg.Log.Info("caught up from another broker", "from", from.Node, "entry", index, "took", time.Since(began).Truncate(time.Millisecond))
	return nil
}

// install brings the log to where the state is, which is that of an entry.
func (s *shard) install(ctx context.Context, st *stream.ReplicaState, index uint64, from string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	peers := append([]string{from}, s.g.cfg.Peers()...) // the others in case it cannot read its own
	// What a reader has found damaged counts as whole afterwards: it is fetched as well.
	_, damaged := errors.AsType[*seglog.CorruptionError](s.broken())
	f := filling{s: s, upTo: st.Next, oldest: st.Oldest, rebuild: damaged, peers: peers, applied: index}
	if err := f.run(ctx); err != nil {
		return err
	}
	return s.sync(st.Next)
}

// adopt makes the shards of the manifest those of the group.
func (g *Group) adopt(m *manifest, shards []*shard) error {
	next := make(map[ShardKey]*shard, len(shards))
	for i, s := range shards {
		e := &m.shards[i]
		if err := s.Restore(e.state); err != nil {
			return err
		}
		s.sealed.Store(e.state.Sealed)
		g.configure(s, e.Spec)
		s.trouble.Store(nil)
		s.Repaired()
		s.trimLog()
		next[s.key] = s
	}
	for _, s := range g.all() {
		if next[s.key] == nil {
			g.remove(s)
		}
	}
	g.nextSlot = m.nextSlot
	g.keep(next)
	g.cfg.Changed()
	return nil
}
