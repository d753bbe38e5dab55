package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// MetadataGroup is the quorum group that carries the catalog itself. The groups
// of streams are numbered from 1.
const MetadataGroup = 0

// Bounds of a cluster.
const (
	MaxBrokers  = 128
	MaxGroups   = 64
	MaxReplicas = 7
	maxText     = 255 // of an address, a zone, a version
)

// Settings are what all brokers of a cluster have to agree on, because what a
// command does depends on it. Zero fields of the command that founds a cluster
// get the defaults.
type Settings struct {
	Groups       uint32 `json:"groups"`        // quorum groups for streams. 0: 8. Never changes
	Replicas     int    `json:"replicas"`      // wanted of each group. 0: 3
	MaxStreams   int    `json:"max_streams"`   // 0: DefaultMaxStreams
	MaxGraves    int    `json:"max_graves"`    // 0: 10000
	ReserveBlock uint64 `json:"reserve_block"` // of a new memory shard. 0: 2^24
}

func (s Settings) withDefaults() Settings {
	return Settings{
		Groups: cmp.Or(s.Groups, 8), Replicas: cmp.Or(s.Replicas, 3),
		MaxStreams: cmp.Or(s.MaxStreams, DefaultMaxStreams), MaxGraves: cmp.Or(s.MaxGraves, defaultMaxGraves),
		ReserveBlock: cmp.Or(s.ReserveBlock, defaultReserveBlock),
	}
}

// Validate reports every problem of the settings at once.
func (s Settings) Validate() error {
	s = s.withDefaults()
	var errs []error
	if s.Groups > MaxGroups {
		errs = append(errs, fmt.Errorf("%d groups: at most %d", s.Groups, MaxGroups))
	}
	if s.Replicas < 1 || s.Replicas > MaxReplicas {
		errs = append(errs, fmt.Errorf("%d replicas: 1 to %d", s.Replicas, MaxReplicas))
	}
	if s.MaxStreams < 0 || s.MaxGraves < 0 {
		errs = append(errs, errors.New("bounds are negative"))
	}
	return errors.Join(errs...)
}

// Broker is a member of the cluster as it has registered itself.
type Broker struct {
	NodeID string `json:"node_id"`
	// Instance is random and made with the data directory: a broker whose volume
	// was wiped has the same node id and is another instance.
	Instance string    `json:"instance"`
	Peer     string    `json:"peer"`             // host:port for other brokers
	Client   string    `json:"client,omitempty"` // host:port for clients
	Admin    string    `json:"admin,omitempty"`  // host:port of the admin server
	Zone     string    `json:"zone,omitempty"`   // replicas are spread over zones
	Version  string    `json:"version,omitempty"`
	Draining bool      `json:"draining,omitempty"` // set by SetDraining only
	Joined   time.Time `json:"joined"`             // when this instance registered first; set by RegisterBroker
}

var (
	nodePattern     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	instancePattern = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
)

// Validate reports every problem of the broker at once.
func (b Broker) Validate() error {
	var errs []error
	if !nodePattern.MatchString(b.NodeID) {
		errs = append(errs, fmt.Errorf("node id %q: want small letters, digits and dashes, 63 at most", b.NodeID))
	}
	if !instancePattern.MatchString(b.Instance) {
		errs = append(errs, fmt.Errorf("instance %q: want 1 to 64 letters and digits", b.Instance))
	}
	if b.Peer == "" {
		errs = append(errs, errors.New("no address for other brokers"))
	}
	for _, s := range []string{b.Peer, b.Client, b.Admin, b.Zone, b.Version} {
		if len(s) > maxText {
			errs = append(errs, fmt.Errorf("%.40q… is longer than %d bytes", s, maxText))
		}
	}
	return errors.Join(errs...)
}

// Group is a quorum group. Immutable: the slices are not to be changed.
type Group struct {
	ID uint32 `json:"id"`
	// Target are the nodes that shall hold the group, the preferred leader first.
	// Of the metadata group they are the voters; all other brokers learn it.
	Target []string `json:"target,omitempty"`
	// Members, Leader and Term are as the group's leader last reported them.
	Members []Member `json:"members,omitempty"`
	Leader  string   `json:"leader,omitempty"` // node
	Term    uint64   `json:"term,omitempty"`
}

// Member is a server of a group's Raft configuration.
type Member struct {
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Voter    bool   `json:"voter,omitempty"`
}

// Has tells whether a node is a member of the group, as last reported.
func (g *Group) Has(node string) bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool { return m.Node == node })
}

// ShardPlace says who has a shard: a quorum group, or one owner.
type ShardPlace struct {
	Group uint32 `json:"group,omitempty"` // 0: one broker owns the shard
	Owner string `json:"owner,omitempty"` // node
	// Instance is the owner's that the shard's data is with. When the owner is
	// another instance by now (its volume was wiped), a durable shard is lost: the
	// new instance must not serve it as if it were empty.
	Instance string `json:"instance,omitempty"`
	Epoch    uint64 `json:"epoch,omitempty"`  // of the owner; rises with every move, one that is called off included
	Moving   string `json:"moving,omitempty"` // node that the shard is being moved to
}

// ShardEnd says what the next offset of a sealed shard would have been.
type ShardEnd struct {
	Shard uint32 `json:"shard"`
	End   uint64 `json:"end"`
}

// GroupTarget is the nodes that shall hold a group, the preferred leader first.
type GroupTarget struct {
	ID    uint32   `json:"id"`
	Nodes []string `json:"nodes"`
}
