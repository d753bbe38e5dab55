package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// dropWait is how long readers of a dropped shard may take to leave.
const dropWait = 10 * time.Second

// changed is what came of an entry about a shard.
type changed struct {
	end uint64
	err error
}

// OpenShard makes a shard on all replicas; one that is there already stays as it is.
// It is for the leader, as the next three are: elsewhere they fail with stream.ErrNotLeader.
// With quorum.ErrOutcomeUnknown, and with any error that is not final, it may be repeated.
func (g *Group) OpenShard(ctx context.Context, o Opening) error {
	cfg, err := g.cfg.Shard(o)
	if err = errors.Join(err, cfg.Validate()); err != nil {
		return fmt.Errorf("replica: open shard %s: %w", o.Key, err)
	}
	_, err = g.change(ctx, "open", change{kindOpen, o})
	return err
}

// Configure changes a shard's spec.
func (g *Group) Configure(ctx context.Context, key ShardKey, spec []byte) error {
	_, err := g.cfg.Settings(spec)
	cfg, cfgErr := g.cfg.Shard(Opening{Key: key, Spec: spec})
	if err = errors.Join(err, cfgErr, cfg.Validate()); err != nil {
		return fmt.Errorf("replica: configure shard %s: %w", key, err)
	}
	_, err = g.change(ctx, "configure", change{kindConfigure, Opening{Key: key, Spec: spec}})
	return err
}

// Seal ends a shard: nothing is appended any more, readers get the rest. It gives the
// offset after the last record.
func (g *Group) Seal(ctx context.Context, key ShardKey) (end uint64, err error) {
	return g.change(ctx, "seal", change{kindSeal, Opening{Key: key}})
}

// Drop removes a shard and its data on all replicas. One that is not there is no error.
func (g *Group) Drop(ctx context.Context, key ShardKey) error {
	_, err := g.change(ctx, "drop", change{kindDrop, Opening{Key: key}})
	if errors.Is(err, ErrNoShard) {
		return nil
	}
	return err
}

func (g *Group) change(ctx context.Context, what string, c change) (end uint64, err error) {
	data, err := c.encode()
	if err != nil {
		return 0, fmt.Errorf("replica: %s shard: %w", what, err)
	}
	if !g.started.Load() {
		return 0, changeError(what, c.Key, stream.ErrNotLeader)
	}
	p := g.Propose(data)
	select {
	case <-p.Done():
	case <-ctx.Done():
		return 0, changeError(what, c.Key, errors.Join(context.Cause(ctx), stream.ErrOutcomeUnknown))
	}
	got, err := p.Result()
	if err != nil {
		return 0, changeError(what, c.Key, err)
	}
	out, ok := got.(changed)
	switch {
	case !ok:
		return 0, changeError(what, c.Key, ErrClosed)
	case out.err != nil:
		return 0, changeError(what, c.Key, out.err)
	}
	return out.end, nil
}

func (g *Group) applyChange(c *change) any {
	s := g.find(c.Key)
	if c.kind == kindOpen {
		if s == nil && !g.applyOpen(c.Opening) {
			return nil
		}
		return changed{}
	}
	if s == nil {
		return changed{err: ErrNoShard}
	}
	switch c.kind {
	case kindConfigure:
		g.configure(s, c.Spec)
	case kindSeal:
		s.sealed.Store(true)
		return changed{end: s.Seal()}
	case kindDrop:
		g.remove(s)
	}
	return changed{}
}

// applyOpen opens a new shard, however often it takes; false: interrupted.
func (g *Group) applyOpen(o Opening) bool {
	slot := g.nextSlot
	g.nextSlot++
	var s *shard
	return g.insist(func() (err error) {
		if s, err = g.open(o, slot, stream.ReplicaState{First: o.First, Next: o.First, Oldest: o.First}); err == nil {
			g.add(s)
		}
		return err
	}, "open shard", o.Key)
}

// add lets everybody see a shard.
func (g *Group) add(s *shard) {
	g.mu.Lock()
	g.byKey[s.key], g.bySlot[s.slot] = s, s
	s.lead()
	g.mu.Unlock()
	g.cfg.Changed()
}

func (g *Group) configure(s *shard, spec []byte) {
	o := s.opening()
	o.Spec = spec
	s.spec.Store(&o)
	s.readSettings(spec)
	cfg, err := g.cfg.Shard(o)
	if err == nil {
		err = s.Configure(cfg.Queue, cfg.TailBytes)
	}
	if err != nil {
		g.cfg.Log.Error("a shard's settings cannot be used, its readers keep theirs", "shard", s.key, "err", err)
	}
}

// remove takes a shard away and has its data removed once its readers are gone.
func (g *Group) remove(s *shard) {
	g.mu.Lock()
	delete(g.byKey, s.key)
	delete(g.bySlot, s.slot)
	g.mu.Unlock()
	g.cfg.Changed()
	s.gone.Store(true)
	g.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, dropWait)
		defer cancel()
		s.mu.Lock() // a repair is over soon: the shard is none of the group's any more
		defer s.mu.Unlock()
		if err := s.shut(ctx, stream.EndDeleted); err != nil {
			g.cfg.Log.Warn("a dropped shard was closed with an error", "shard", s.key, "err", err)
		}
		if err := g.cfg.RemoveLog(s.key); err != nil {
			g.cfg.Log.Warn("data of a dropped shard stays for now", "shard", s.key, "err", err)
		}
	})
}

// keep replaces the maps: the shards that stay, and new ones.
func (g *Group) keep(byKey map[ShardKey]*shard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byKey, g.bySlot = byKey, make(map[uint32]*shard, len(byKey))
	for s := range maps.Values(byKey) {
		g.bySlot[s.slot] = s
	}
}

func deletedError() *stream.Error {
	return &stream.Error{Code: wire.CodeNotFound, Retry: wire.RetryAfter, RetryAfter: time.Second, Message: "the stream was deleted", Err: stream.ErrClosed}
}
