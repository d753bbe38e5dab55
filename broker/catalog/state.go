package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// State is everything that the catalog knows, of a single broker or of a cluster.
// It is immutable: Apply returns another one. What it returns shares its slices,
// which are not to be changed.
type State struct {
	entries map[string]*Entry // by Name.String()
	// graves are the deleted names that have no living stream, oldest first, and
	// at most the configured number of them.
	graves []grave
	// floor is where streams start whose name has no grave: beyond everything
	// that was in graves that had to be forgotten.
	floor uint64

	// What follows is empty for a single broker.

	index     uint64 // of the command that was applied last
	version   uint64 // index of the command that changed something last
	cluster   string // id
	importing bool
	settings  Settings
	brokers   map[string]*Broker // by node id
	removed   []instanceID       // may not come back, oldest first
	groups    map[uint32]*Group
	buried    []string // incarnations of deleted streams, oldest first
}

// instanceID is a data directory of a broker.
type instanceID struct {
	Node     string `json:"node"`
	Instance string `json:"instance"`
}

// How many removed instances and deleted incarnations a cluster remembers.
const (
	maxRemoved = 256
	maxBuried  = 4096
)

// New is the state of a catalog that nothing was done with.
func New() *State { return &State{entries: make(map[string]*Entry)} }

// Cluster is the cluster's id; empty: there is none, or it is not founded yet.
func (s *State) Cluster() string { return s.cluster }

// Importing says that the founder is still bringing its streams in; nothing else
// about streams can be changed until it is done.
func (s *State) Importing() bool { return s.importing }

// Settings are the cluster's.
func (s *State) Settings() Settings { return s.settings }

// Index is of the command that was applied last, whatever came of it.
func (s *State) Index() uint64 { return s.index }

// Version is the index of the last command that changed something.
func (s *State) Version() uint64 { return s.version }

// Broker finds a broker.
func (s *State) Broker(node string) (Broker, bool) {
	b := s.brokers[node]
	if b == nil {
		return Broker{}, false
	}
	return *b, true
}

// Brokers are all brokers, ordered by node id.
func (s *State) Brokers() []Broker {
	out := make([]Broker, 0, len(s.brokers))
	for _, b := range s.brokers {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b Broker) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return out
}

// WasRemoved says that this instance of a broker was removed or replaced: it must
// not act for the cluster any more.
func (s *State) WasRemoved(node, instance string) bool {
	return slices.Contains(s.removed, instanceID{node, instance})
}

// Group finds a quorum group.
func (s *State) Group(id uint32) (Group, bool) {
	g := s.groups[id]
	if g == nil {
		return Group{}, false
	}
	return *g, true
}

// Groups are all groups that are known, the metadata group included, ordered by id.
func (s *State) Groups() []Group {
	out := make([]Group, 0, len(s.groups))
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		out = append(out, *s.groups[id])
	}
	return out
}

// Get finds a stream; the error is ErrNotFound.
func (s *State) Get(n Name) (Entry, error) {
	e := s.entries[n.String()]
	if e == nil {
		return Entry{}, fmt.Errorf("catalog: stream %s: %w", n, ErrNotFound)
	}
	return *e, nil
}

// List returns all streams, ordered by name.
func (s *State) List() []Entry {
	out := make([]Entry, 0, len(s.entries))
	for _, e := range s.entries {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return compareNames(a.Spec.Name, b.Spec.Name) })
	return out
}

// Streams is how many streams there are.
func (s *State) Streams() int { return len(s.entries) }

// Buried says that a stream of this incarnation was deleted in this cluster and
// that its data may go. That an incarnation is not known at all is no reason to
// remove anything.
func (s *State) Buried(incarnation string) bool { return slices.Contains(s.buried, incarnation) }

func compareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Stream, b.Stream))
}
