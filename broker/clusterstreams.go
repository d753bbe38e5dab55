package broker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/cluster"
	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// clusterStreams keeps what this broker serves as the cluster's catalog has it: one
// goroutine looks at the newest state whenever it has changed, and opens, closes and
// deletes. What it does not manage is tried again.
type clusterStreams struct {
	*directory

	self    quorum.Server
	opener  *opener
	cluster *cluster.Cluster
	where   *locations
	groups  *groups
	peers   *peer.Transport
	forward *route.Forwarder
	log     *slog.Logger

	troubled map[route.Key]string // the loop's: what was said last of shards that do not open
	specs    shardSpecs           // the loop's
	known    map[route.Key]bool   // the loop's: shards that places were made for
	swept    bool                 // the loop's: leftovers of buried streams were removed

	mu      sync.Mutex // guards seen and advance
	seen    uint64     // version of the catalog that is served
	advance chan struct{}

	kick  chan struct{}
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

// run follows the catalog until ctx is over.
func (s *clusterStreams) run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.cluster.Changed()
		done := s.follow(ctx, s.cluster.State())
		var again <-chan time.Time
		if !done {
			again = time.After(retryEvery)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-s.kick:
		case <-again:
		}
	}
}

// follow makes this broker serve what a state says; false: not all of it could be done.
func (s *clusterStreams) follow(ctx context.Context, st *catalog.State) (done bool) {
	entries := st.List()
	s.where.learn(st, entries)
	next := make(map[stream.Name]*served, len(entries))
	now := *s.byName.Load()
	keys := make(map[route.Key]bool, len(s.known))
	for i := range entries {
		e := &entries[i]
		name := nameOf(e.Spec.Name)
		for shard := range e.Places {
			keys[keyOf(e, shard)] = true
		}
		next[name] = s.serve(now[name], e)
	}
	done = s.ownShards(ctx, entries)
	s.byName.Store(&next)
	s.generation.Add(1)
	for k := range s.known {
		if !keys[k] {
			s.forward.Remove(k)
		}
	}
	s.known = keys
	s.where.wake()
	done = s.endShards(ctx, entries) && done
	done = s.leadGroups(ctx, st, entries) && done
	s.clearBuried(st)
	s.mu.Lock()
	if done {
		s.seen = st.Version()
	}
	close(s.advance)
	s.advance = make(chan struct{})
	s.mu.Unlock()
	return done
}

// serve is a stream as this broker serves it from now on.
func (s *clusterStreams) serve(have *served, e *catalog.Entry) *served {
	v := &served{
		entry: *e, find: func(i int) *openShard { return s.where.local(keyOf(e, i)) },
		leader: func(i int) string { return s.where.leads(e.Places[i]) },
	}
	if e.Deleting {
		v.refusal = deletedRefusal()
		return v
	}
	if have != nil && have.stream != nil && have.entry.Incarnation == e.Incarnation && have.entry.Spec.Shards == e.Spec.Shards {
		v.stream = have.stream
		return v
	}
	places := make([]stream.Place, e.Spec.Shards)
	for i := range places {
		places[i] = s.forward.Place(keyOf(e, i))
	}
	v.stream = stream.NewStream(nameOf(e.Spec.Name), e.Incarnation, durabilityOf(e.Spec.Durability), e.Spec.Routing, places)
	return v
}

// ownShards opens the unreplicated shards that are this broker's and closes those that
// are not any more.
func (s *clusterStreams) ownShards(ctx context.Context, entries []catalog.Entry) (done bool) {
	wanted := make(map[route.Key]bool)
	done = true
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	var mu sync.Mutex // guards done and troubled
	for i := range entries {
		e := &entries[i]
		for shard, p := range e.Places {
			if p.Group != catalog.MetadataGroup || p.Owner != s.self.Node || p.Instance != s.self.Instance {
				continue
			}
			k := keyOf(e, shard)
			wanted[k] = true
			o := s.where.ownedShard(k)
			if o != nil && (e.Deleting || o.asWanted(e)) {
				continue
			}
			g.Go(func() error {
				if o != nil {
					s.closeOwned(ctx, k, o, stream.EndShutdown)
				}
				err := s.openOwned(e, shard)
				mu.Lock()
				defer mu.Unlock()
				s.trouble(k, e, shard, err)
				done = done && err == nil
				return nil
			})
		}
	}
	_ = g.Wait() // none fails
	s.where.owned.Range(func(key, value any) bool {
		k, isKey := key.(route.Key)
		o, isShard := value.(*ownedShard)
		if isKey && isShard && !wanted[k] {
			s.closeOwned(ctx, k, o, stream.EndShutdown)
			s.swept = false
		}
		return true
	})
	return done
}

// trouble says once what keeps a shard from opening.
func (s *clusterStreams) trouble(k route.Key, e *catalog.Entry, shard int, err error) {
	if err == nil {
		delete(s.troubled, k)
		return
	}
	if text := err.Error(); s.troubled[k] != text {
		s.troubled[k] = text
		s.log.Error("shard cannot be served", slog.String("stream", e.Spec.Name.String()), slog.Int("shard", shard), slog.Any("error", err))
	}
}

// reachable are those that clients can be sent to.
func (s *clusterStreams) reachable() []wire.Broker {
	var out []wire.Broker
	for _, b := range s.cluster.State().Brokers() {
		if b.Client != "" {
			out = append(out, wire.Broker{NodeID: b.NodeID, Addr: b.Client})
		}
	}
	return slices.Clip(out)
}

// beginShutdown ends the loop and closes the shards that this broker owns.
func (s *clusterStreams) beginShutdown(ctx context.Context) {
	s.stop()
	s.tasks.Wait()
	var g errgroup.Group
	s.where.owned.Range(func(_, value any) bool {
		if o, ok := value.(*ownedShard); ok {
			g.Go(func() error { return o.Close(ctx, stream.EndShutdown) })
		}
		return true
	})
	if err := g.Wait(); err != nil {
		s.log.Warn("shards closed with an error", slog.Any("error", err))
	}
}

// finishShutdown closes the logs of owned shards.
func (s *clusterStreams) finishShutdown() error {
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	s.where.owned.Range(func(_, value any) bool {
		if o, ok := value.(*ownedShard); ok {
			g.Go(o.CloseLog)
		}
		return true
	})
	return g.Wait()
}

func newClusterStreams(m *member, o *opener, log *slog.Logger) *clusterStreams {
	s := &clusterStreams{
		directory: newDirectory(), self: m.self, opener: o, where: m.where, groups: m.groups, peers: m.peers, forward: m.forward, log: log,
		troubled: make(map[route.Key]string), specs: make(shardSpecs), known: make(map[route.Key]bool), advance: make(chan struct{}), kick: make(chan struct{}, 1),
	}
	s.brokers = s.reachable
	s.answerMoves()
	s.answerShows()
	return s
}

// begin serves what the catalog has and follows it.
func (s *clusterStreams) begin() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.follow(ctx, s.cluster.State())
	s.tasks.Go(func() { s.run(ctx) })
	s.tasks.Go(func() { s.watchLeaders(ctx) })
}

// watchLeaders tells who waits for a leader that there may be one.
func (s *clusterStreams) watchLeaders(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.cluster.LeadersChanged()
		s.where.wake()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// wake has the loop look again: shards came or went, or this broker leads or ceased to.
func (s *clusterStreams) wake() {
	s.where.wake()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
