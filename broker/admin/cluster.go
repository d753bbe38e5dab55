package admin

import (
	"context"
	"time"
)

// Cluster is the broker's cluster. An error may be an *Error or anything else,
// which is reported as internal.
type Cluster interface {
	ClusterStatus(ctx context.Context) (ClusterStatus, error)
	// SetDraining has a broker give away everything that it holds, or take part
	// again. It returns once that is decided.
	SetDraining(ctx context.Context, node string, draining bool) error
	// RemoveBroker takes a broker that holds nothing out of the cluster, for good.
	// Force gives up the shards that only it has.
	RemoveBroker(ctx context.Context, node string, force bool) error
	// MoveReplica has a replica of a group go from one broker to another.
	MoveReplica(ctx context.Context, group uint32, from, to string) error
	// TransferLeader has another broker lead a group; empty: the one that should.
	TransferLeader(ctx context.Context, group uint32, to string) error
	// BalanceLeaders has leaders go where they belong, now.
	BalanceLeaders(ctx context.Context) error
}

// ClusterStatus is the cluster as one broker sees it. It is the answer of
// GET /v1/cluster.
type ClusterStatus struct {
	Cluster  string          `json:"cluster"`
	Asked    string          `json:"asked"`             // the broker that says so
	Leader   string          `json:"leader,omitempty"`  // of the metadata group; empty: nobody, or it is not known
	Problem  string          `json:"problem,omitempty"` // why nothing can be changed; empty: it can
	Index    uint64          `json:"index"`             // of the catalog here
	Replicas int             `json:"replicas"`          // that groups are to have
	Brokers  []ClusterBroker `json:"brokers"`
	Groups   []ClusterGroup  `json:"groups"`
	Moves    []ClusterMove   `json:"moves,omitempty"` // shards on their way to another owner
}

// ClusterBroker is one broker.
type ClusterBroker struct {
	Node     string    `json:"node"`
	Instance string    `json:"instance"` // another one when its data directory is
	Peer     string    `json:"peer"`
	Client   string    `json:"client,omitempty"`
	Admin    string    `json:"admin,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Version  string    `json:"version,omitempty"`
	Joined   time.Time `json:"joined"`
	Draining bool      `json:"draining,omitempty"`
	Up       bool      `json:"up"`
	Trouble  string    `json:"trouble,omitempty"` // why it does not answer
	Heard    time.Time `json:"heard,omitzero"`    // when it answered last
	// What it holds: replicas of groups, groups that it leads, shards that only it
	// has, and a vote in the metadata group.
	Replicas int  `json:"replicas"`
	Leads    int  `json:"leads"`
	Shards   int  `json:"shards"`
	Voter    bool `json:"voter,omitempty"`
	// InSync says that all that it holds is up to date, CanStop that no group loses
	// its majority if it stops now; Because says why not. Who restarts brokers one
	// after the other waits for both.
	InSync  bool     `json:"in_sync"`
	CanStop bool     `json:"can_stop"`
	Because []string `json:"because,omitempty"`
}

// Holds says that the broker holds something that keeps it from being removed.
func (b *ClusterBroker) Holds() bool { return b.Replicas+b.Leads+b.Shards > 0 || b.Voter }

// ClusterGroup is one quorum group.
type ClusterGroup struct {
	Group   uint32          `json:"group"`            // 0 is the metadata group
	Target  []string        `json:"target"`           // brokers that are to hold it, the one that should lead first
	Leader  string          `json:"leader,omitempty"` // empty: nobody, or it is not known
	Term    uint64          `json:"term"`
	Members []ClusterMember `json:"members"`
	Next    string          `json:"next,omitempty"` // what is being done about the members, or waited for
}

// ClusterMember is one member of a group.
type ClusterMember struct {
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Voter    bool   `json:"voter,omitempty"` // false: it learns
	Up       bool   `json:"up"`
	CaughtUp bool   `json:"caught_up"`
	Lag      uint64 `json:"lag"` // entries
	Applied  uint64 `json:"applied"`
	State    string `json:"state,omitempty"` // what it is busy with, or why it is stuck
}

// ClusterMove is a shard with one owner that is on its way to another.
type ClusterMove struct {
	Name

	Shard   uint32 `json:"shard"`
	From    string `json:"from"`
	To      string `json:"to"`
	Problem string `json:"problem,omitempty"` // of the last attempt
}
