package egress

import (
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/stream"
)

// LanePolicy picks the lane of a subscription.
type LanePolicy uint8

const (
	// SubscriberIDHash spreads subscriptions by their id; it is also called Auto.
	SubscriberIDHash LanePolicy = iota
	// ConnectionIDHash spreads them by their connection's id.
	ConnectionIDHash
	// RoundRobinPin takes the next lane for each new one and stays there.
	RoundRobinPin
)

// ParseLanePolicy reads the name of a policy.
func ParseLanePolicy(s string) (LanePolicy, bool) {
	switch s {
	case "", "Auto", "SubscriberIDHash":
		return SubscriberIDHash, true
	case "ConnectionIDHash":
		return ConnectionIDHash, true
	case "RoundRobinPin":
		return RoundRobinPin, true
	}
	return 0, false
}

// inlineWakes is how many parked feeders a committer wakes itself: handing them to
// the lane's goroutine would cost one more wake-up before the first byte.
const inlineWakes = 8

// lane wakes the feeders of a set of subscriptions.
type lane struct {
	wakeups atomic.Uint64
	subs    atomic.Int64

	mu     sync.Mutex // guards groups and dirty
	groups map[*stream.Shard]*group
	dirty  []*group

	kick chan struct{} // capacity 1
	quit chan struct{}
	done chan struct{}
}

// group is a lane's feeders of one shard; it is what the shard wakes.
type group struct {
	lane *lane
	refs int // feeders; guarded by lane.mu

	waiting atomic.Int32 // len(parked)
	queued  atomic.Bool  // in lane.dirty
	last    atomic.Int64 // when feeders were last served, in ns since the epoch

	mu     sync.Mutex // guards parked and each feeder's place
	parked []*feeder
}

func newLane() *lane {
	l := &lane{groups: make(map[*stream.Shard]*group), kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *lane) close() {
	close(l.quit)
	<-l.done
}

func (l *lane) run() {
	defer close(l.done)
	for {
		select {
		case <-l.kick:
		case <-l.quit:
			return
		}
		l.mu.Lock()
		dirty := l.dirty
		l.dirty = nil
		l.mu.Unlock()
		for _, g := range dirty {
			g.queued.Store(false)
			g.serve()
		}
	}
}

// join adds a feeder's place to the group of its shard.
func (l *lane) join(s *stream.Shard) *group {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs.Add(1)
	g := l.groups[s]
	if g == nil {
		g = &group{lane: l}
		l.groups[s] = g
		s.Watch(g)
	}
	g.refs++
	return g
}

// leave undoes join, for a feeder that is not parked.
func (l *lane) leave(g *group, s *stream.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs.Add(-1)
	if g.refs--; g.refs == 0 {
		delete(l.groups, s)
		s.Unwatch(g)
	}
}

// Wake is called at every commit. It costs one load while all feeders are busy.
func (g *group) Wake() {
	n := g.waiting.Load()
	switch {
	case n == 0:
	case n <= inlineWakes:
		g.serve()
	case g.queued.CompareAndSwap(false, true):
		l := g.lane
		l.mu.Lock()
		l.dirty = append(l.dirty, g)
		l.mu.Unlock()
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
}

// pieceBytes is how much a feeder of this lane writes at once.
func (l *lane) pieceBytes(c *Config) int {
	share := c.LaneBytes / max(l.subs.Load(), 1)
	return int(min(max(share, minPiece), int64(c.PieceBytes)))
}

// pick chooses the lane of a subscription.
func (e *Engine) pick(c *Conn, id uint64) *lane {
	if !e.cfg.SpreadConnections {
		if l := c.lane.Load(); l != nil {
			return l
		}
	}
	n := uint64(len(e.lanes))
	var l *lane
	switch e.cfg.Policy {
	case ConnectionIDHash:
		l = e.lanes[mix(c.id)%n]
	case RoundRobinPin:
		l = e.lanes[e.robin.Add(1)%n]
	default:
		l = e.lanes[mix(id)%n]
	}
	if !e.cfg.SpreadConnections && !c.lane.CompareAndSwap(nil, l) {
		return c.lane.Load()
	}
	return l
}

// mix spreads consecutive ids.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
