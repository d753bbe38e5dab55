package cluster

import (
	"context"
	"sync"
	"time"

	"felix.dev/felix/broker/catalog"
)

// Status is the cluster as one broker sees it.
type Status struct {
	Cluster  string
	Asked    string // the broker that says so
	Leader   string // of the metadata group; empty: nobody, or it is not known
	Problem  string // why the catalog cannot be changed; empty: it can
	Index    uint64 // of the catalog here
	Settings catalog.Settings
	Brokers  []BrokerStatus // by node id
	Groups   []GroupStatus  // by id; 0 is the metadata group
	Moves    []MoveStatus   // shards on their way to another owner
}

// BrokerStatus is one broker.
type BrokerStatus struct {
	catalog.Broker

	Up      bool
	Trouble string    // why it does not answer
	Heard   time.Time // when it answered last; zero: never since this broker started
	Holds   Holdings
	// InSync says that everything that it holds is up to date: the next broker of a
	// rolling restart may be stopped, as far as this one is concerned.
	InSync bool
	// CanStop says that every group goes on without a break of its majority if the
	// broker stops now.
	CanStop bool
	// Because says why it is not in sync, or cannot stop.
	Because []string
}

// Holdings are what a broker holds.
type Holdings struct {
	Replicas int  // of groups of streams
	Leads    int  // groups of streams
	Shards   int  // that only it has
	Voter    bool // of the metadata group
}

// Nothing says that a broker that is drained is done.
func (h Holdings) Nothing() bool { return h == Holdings{} }

// GroupStatus is one quorum group.
type GroupStatus struct {
	ID      uint32
	Target  []string // nodes that are to hold it, the preferred leader first
	Leader  string   // empty: nobody, or it is not known
	Term    uint64
	Members []MemberStatus
	Next    string // what is being done about the members, or waited for
}

// MemberStatus is one member of a group.
type MemberStatus struct {
	Node     string
	Instance string
	Voter    bool
	Up       bool
	CaughtUp bool
	Lag      uint64 // entries that it lacks, as far as the leader knows
	Applied  uint64
	State    string // restoring, or why it is stuck
}

// MoveStatus is a shard with one owner that is on its way.
type MoveStatus struct {
	Stream   catalog.Name
	Shard    uint32
	From, To string
	Problem  string // of the last attempt
}

// Status asks every broker and puts together what they say. Who does not answer in
// time is shown as such.
func (c *Cluster) Status(ctx context.Context) Status {
	c.askAll(ctx)
	return c.LastStatus()
}

// LastStatus is Status as of what was heard last: it asks nobody and is cheap.
func (c *Cluster) LastStatus() Status {
	words := c.around.words()
	words[c.cfg.Self.Node] = word{report: c.report(), at: time.Now()}
	leader, _ := c.metadataLeader()
	s := statusOf(c.State(), words, func(group uint32) (string, uint64) {
		node, term, _ := c.Leader(group)
		return node, term
	})
	s.Asked, s.Leader, s.Problem = c.cfg.Self.Node, leader, c.noLeaderReason()
	s.Index, _ = c.machine.progress()
	return s
}

// askAll has everybody report now.
func (c *Cluster) askAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Call)
	defer cancel()
	var wg sync.WaitGroup
	for _, b := range c.State().Brokers() {
		if b.NodeID == c.cfg.Self.Node {
			continue
		}
		wg.Go(func() {
			var answer report
			if err := c.cfg.Peer.Call(ctx, b.NodeID, methodExchange, c.report(), &answer); err != nil {
				c.around.miss(b.NodeID, err)
				return
			}
			c.around.hear(&answer)
		})
	}
	wg.Wait()
}
