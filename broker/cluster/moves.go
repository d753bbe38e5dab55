package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"felix.dev/felix/broker/catalog"
)

// moves brings durable shards with one owner to this broker, one after the other.
// What is to come is in the catalog, so that a broker that was restarted goes on.
type moves struct {
	c *Cluster

	mu     sync.Mutex
	failed map[shardKey]string // by shard: why the last attempt came to nothing

	cancel context.CancelFunc
	done   chan struct{}
}

// shardKey is a shard of a living stream.
type shardKey struct {
	incarnation string
	shard       uint32
}

func newMoves(c *Cluster) *moves { return &moves{c: c, failed: make(map[shardKey]string)} }

func (m *moves) start() {
	if m.c.cfg.MoveShard == nil {
		return
	}
	ctx, cancel := context.WithCancel(m.c.ctx)
	m.cancel, m.done = cancel, make(chan struct{})
	m.c.wg.Go(func() {
		defer close(m.done)
		m.run(ctx)
	})
}

func (m *moves) stop() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
}

func (m *moves) run(ctx context.Context) {
	for {
		changed := m.c.Changed()
		failures := 0
		coming := m.coming()
		for _, move := range coming {
			if ctx.Err() != nil {
				return
			}
			if err := m.bring(ctx, move); err != nil && ctx.Err() == nil {
				failures++
				m.c.cfg.Log.Warn("a shard could not be moved here; trying again", "stream", move.Entry.Spec.Name.String(), "shard", move.Shard,
					"from", move.From, "error", err)
			}
		}
		m.forget(coming)
		var retry <-chan time.Time
		if failures > 0 {
			retry = time.After(jittered(m.c.cfg.Timings.Exchange)) // it is collected when something else comes first
		}
		select {
		case <-changed:
		case <-retry:
		case <-ctx.Done():
		}
		if !rest(ctx) {
			return
		}
	}
}

// coming are the durable shards that are on their way to this broker.
func (m *moves) coming() []ShardMove {
	var out []ShardMove
	for _, e := range m.c.State().List() {
		if e.Spec.Durability == catalog.Memory || e.Deleting {
			continue
		}
		for i, p := range e.Places {
			if p.Moving == m.c.cfg.Self.Node && p.Owner != p.Moving {
				out = append(out, ShardMove{Entry: e, Shard: uint32(i), From: p.Owner, Epoch: p.Epoch})
			}
		}
	}
	return out
}

// bring moves one shard here and makes this broker its owner.
func (m *moves) bring(ctx context.Context, move ShardMove) error {
	c := m.c
	key := shardKey{move.Entry.Incarnation, move.Shard}
	began := time.Now()
	c.cfg.Log.Info("moving a shard here", "stream", move.Entry.Spec.Name.String(), "shard", move.Shard, "from", move.From)
	err := c.cfg.MoveShard(ctx, move)
	if err == nil {
		err = c.settled(ctx, catalog.FinishMove{MoveShard: catalog.MoveShard{
			Name: move.Entry.Spec.Name, Incarnation: move.Entry.Incarnation, Shard: move.Shard, Epoch: move.Epoch, To: c.cfg.Self.Node,
		}})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.failed[key] = err.Error()
		return fmt.Errorf("cluster: move shard: %w", err)
	}
	delete(m.failed, key)
	c.cfg.Log.Info("moved a shard here", "stream", move.Entry.Spec.Name.String(), "shard", move.Shard, "took", time.Since(began))
	return nil
}

// forget drops what was noted of shards that come no more.
func (m *moves) forget(coming []ShardMove) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.failed {
		if !slices.ContainsFunc(coming, func(s ShardMove) bool { return key == shardKey{s.Entry.Incarnation, s.Shard} }) {
			delete(m.failed, key)
		}
	}
}

// report is what is on its way to this broker and does not come.
func (m *moves) report() []moveReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failed) == 0 {
		return nil
	}
	var out []moveReport
	for _, s := range m.coming() {
		if why, ok := m.failed[shardKey{s.Entry.Incarnation, s.Shard}]; ok && len(out) < maxReported {
			out = append(out, moveReport{Stream: s.Entry.Spec.Name.String(), Shard: s.Shard, From: s.From, Error: why})
		}
	}
	slices.SortFunc(out, func(a, b moveReport) int { return strings.Compare(a.Stream, b.Stream) })
	return out
}

// maxReported bounds the shards that a report lists.
const maxReported = 20
