package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/replica"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/stream"
)

// groups are the quorum groups of streams that this broker has a replica of, and
// what is known here of their shards' logs.
type groups struct {
	opener  *opener
	log     *slog.Logger
	fetches *replica.Fetches
	peers   func(group uint32) []string
	dial    func(ctx context.Context, node string) (net.Conn, error)
	moved   func(node string, term uint64) *stream.Moved
	changed func()
	placed  func(group uint32) []route.Key // the shards that the catalog gives a group

	byID   atomic.Pointer[map[uint32]*replica.Group] // replaced as a whole, under mu
	mu     sync.Mutex
	health sync.Map // route.Key -> *replicaHealth
}

// replicaHealth is what is known of a replicated shard's log beside its records.
type replicaHealth struct {
	health   *health
	openedAt uint64
	dir      string
}

// get is the replica of a group; nil: there is none here.
func (g *groups) get(id uint32) *replica.Group { return (*g.byID.Load())[id] }

// all are the replicas that this broker has.
func (g *groups) all() map[uint32]*replica.Group { return *g.byID.Load() }

// shard is the replica of a shard, if this broker has one.
func (g *groups) shard(group uint32, key route.Key) *openShard {
	r := g.get(group)
	if r == nil {
		return nil
	}
	s, ok := r.Shard(replica.ShardKey(key))
	if !ok {
		return nil
	}
	k := &openShard{Shard: s}
	if h, ok := g.health.Load(key); ok {
		if h, ok := h.(*replicaHealth); ok {
			k.health, k.openedAt = h.health, h.openedAt
		}
	}
	if k.health == nil {
		k.health = &health{log: g.log, m: g.opener.metrics}
	}
	return k
}

// has says whether a group here has shards of a stream, by its incarnation.
func (g *groups) has(incarnation string) (found bool) {
	g.health.Range(func(key, _ any) bool {
		k, ok := key.(route.Key)
		found = ok && k.Incarnation == incarnation
		return !found
	})
	return found
}

// machine makes the machine of a group that this broker becomes a member of, or
// that it was one of when it ended.
func (g *groups) machine(id uint32) (quorum.Machine, func(quorum.Leadership), error) {
	r, err := replica.New(replica.Config{
		Group: id, OpenLog: g.openLog, Shard: g.shardConfig, Settings: settingsOf, RemoveLog: g.removeLog,
		Peers: func() []string { return g.peers(id) }, Dial: g.dial, Moved: g.moved, Changed: g.changed,
		Metrics: replicaMetrics(&g.opener.metrics.Replica),
		Log:     g.log,
	})
	if err != nil {
		return nil, nil, err
	}
	g.set(id, r)
	g.fetches.Add(r)
	return r, r.OnLeader, nil
}

func (g *groups) set(id uint32, r *replica.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := maps.Clone(*g.byID.Load())
	if r == nil {
		delete(next, id)
	} else {
		next[id] = r
	}
	g.byID.Store(&next)
}

// started gives a machine the group that it is the machine of.
func (g *groups) started(id uint32, q *quorum.Group) {
	if r := g.get(id); r != nil {
		r.Start(q)
	}
	g.changed()
}

// stopped ends the machine of a group that was closed here, and removes what it
// holds if this broker is no member any more.
func (g *groups) stopped(ctx context.Context, id uint32, removed bool) error {
	if r := g.get(id); r != nil {
		g.set(id, nil)
		g.fetches.Remove(r)
		shards := r.Shards()
		err := r.Close(ctx)
		for _, s := range shards { // what is kept of one that is not here would keep its folder
			g.health.Delete(route.Key(s.Key))
		}
		g.changed()
		if err != nil {
			return err
		}
	}
	if !removed {
		return nil
	}
	// It was closed before, perhaps by an earlier process: the catalog tells what it held.
	// What is of streams that are gone goes with their folders.
	for _, key := range g.placed(id) {
		if err := g.removeLog(replica.ShardKey(key)); err != nil {
			return err
		}
	}
	return nil
}

func replicaMetrics(m *metrics.Replica) replica.Metrics {
	return replica.Metrics{
		Proposed: func(publishes, _ int) { m.Publishes.Add(float64(publishes)) },
		Fetched:  func(bytes int) { m.Fetched.Add(float64(bytes)) },
		Sent:     func(bytes int) { m.Sent.Add(float64(bytes)) },
		Broken:   m.Broken.Inc,
	}
}

// entryOf is the stream of a shard as far as a group knows it.
func entryOf(o replica.Opening) (*catalog.Entry, error) {
	var s shardSpec
	if err := json.Unmarshal(o.Spec, &s); err != nil {
		return nil, fmt.Errorf("broker: shard %s/%d: settings: %w", o.Key.Incarnation, o.Key.Shard, err)
	}
	e := &catalog.Entry{Spec: s.Spec, Incarnation: o.Key.Incarnation, FirstOffsets: make([]uint64, o.Key.Shard+1)}
	e.FirstOffsets[o.Key.Shard] = o.First
	return e, nil
}

func (g *groups) shardConfig(o replica.Opening) (stream.Config, error) {
	e, err := entryOf(o)
	if err != nil {
		return stream.Config{}, err
	}
	return g.opener.shardConfig(e, int(o.Key.Shard), true, nil), nil
}

func settingsOf(spec []byte) (replica.Settings, error) {
	var s shardSpec
	if err := json.Unmarshal(spec, &s); err != nil {
		return replica.Settings{}, fmt.Errorf("broker: settings of a shard: %w", err)
	}
	out := replica.Settings{MaxAge: s.Spec.Retention.MaxAge}
	if s.Spec.Retention.MaxBytes > 0 {
		out.MaxBytes = perShard(s.Spec.Retention.MaxBytes, s.Spec.Shards)
	}
	return out, nil
}
