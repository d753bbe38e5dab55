package broker

import (
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/replica"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/stream"
)

// locations are who serves which shard, as far as this broker knows: the table that
// publishes and subscriptions are routed by. Lookups take no lock but the one that the
// owned shards are found under.
type locations struct {
	self   quorum.Server
	groups *groups
	leader func(group uint32) (node string, term uint64, ok bool)

	places  atomic.Pointer[map[route.Key]catalog.ShardPlace] // of the catalog; replaced as a whole
	clients atomic.Pointer[map[string]string]                // node to its address for clients; likewise
	owned   sync.Map                                         // route.Key -> *ownedShard, while it is served

	mu      sync.Mutex // guards changed
	changed chan struct{}
}

func newLocations(self quorum.Server, g *groups) *locations {
	l := &locations{self: self, groups: g, changed: make(chan struct{})}
	l.places.Store(new(map[route.Key]catalog.ShardPlace))
	l.clients.Store(new(map[string]string))
	return l
}

var _ route.Table = (*locations)(nil)

// Changed implements route.Table.
func (l *locations) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// wake tells who waits that an answer may be another one now.
func (l *locations) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// learn takes what the catalog says.
func (l *locations) learn(st *catalog.State, entries []catalog.Entry) {
	places := make(map[route.Key]catalog.ShardPlace, len(entries))
	for i := range entries {
		for shard, p := range entries[i].Places {
			places[route.Key{Incarnation: entries[i].Incarnation, Shard: uint32(shard)}] = p
		}
	}
	clients := make(map[string]string)
	for _, b := range st.Brokers() {
		if b.Client != "" {
			clients[b.NodeID] = b.Client
		}
	}
	l.places.Store(&places)
	l.clients.Store(&clients)
}

// Lookup implements route.Table.
func (l *locations) Lookup(k route.Key) route.State {
	p, ok := (*l.places.Load())[k]
	switch {
	case !ok:
		return route.State{Gone: true}
	case p.Group != catalog.MetadataGroup:
		return l.replicated(k, p.Group)
	case p.Owner != l.self.Node:
		return route.State{Node: p.Owner, Addr: l.client(p.Owner), Generation: p.Epoch}
	case p.Instance != l.self.Instance: // its records were on a volume that is gone
		return route.State{Reason: stream.ReasonOwnerUnavailable, Generation: p.Epoch}
	}
	if o := l.ownedShard(k); o != nil && !o.leaving.Load() {
		return route.State{Local: o.Shard, Generation: p.Epoch}
	}
	if p.Moving != "" {
		return route.State{Reason: stream.ReasonMoving, Generation: p.Epoch}
	}
	return route.State{Reason: stream.ReasonNotReady, Generation: p.Epoch}
}

// replicated is who leads the group of a shard.
func (l *locations) replicated(k route.Key, group uint32) route.State {
	node, term, known := l.leader(group)
	if r := l.groups.get(group); r != nil && r.Serving() {
		s, ok := r.Shard(replica.ShardKey(k))
		if ok && s.Leads() {
			return route.State{Local: s, Generation: term}
		}
		return route.State{Reason: stream.ReasonNotReady, Generation: term}
	}
	if !known || node == l.self.Node {
		return route.State{Reason: stream.ReasonNotReady, Generation: term}
	}
	return route.State{Node: node, Addr: l.client(node), Generation: term}
}

// leads is the node that leads the group of a shard; empty: it has none, or nobody is known.
func (l *locations) leads(p catalog.ShardPlace) string {
	if p.Group == catalog.MetadataGroup {
		return ""
	}
	node, _, _ := l.leader(p.Group)
	return node
}

// client is a broker's address for clients; empty: it has none.
func (l *locations) client(node string) string { return (*l.clients.Load())[node] }

// ownedShard is a shard that this broker owns and has open; nil: there is none.
func (l *locations) ownedShard(k route.Key) *ownedShard {
	v, _ := l.owned.Load(k)
	o, _ := v.(*ownedShard)
	return o
}

// local is a shard whose records are on this broker, led here or not; nil: they are not.
func (l *locations) local(k route.Key) *openShard {
	if p := (*l.places.Load())[k]; p.Group != catalog.MetadataGroup {
		return l.groups.shard(p.Group, k)
	}
	if o := l.ownedShard(k); o != nil {
		return &o.openShard
	}
	return nil
}

// moved is how clients reach the node that a shard was handed to.
func (l *locations) moved(node string, term uint64) *stream.Moved {
	addr := l.client(node)
	if addr == "" {
		return nil
	}
	return &stream.Moved{NodeID: node, Addr: addr, Generation: term}
}
