package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/quorum"
)

// Config configures a Cluster.
type Config struct {
	// Self is this broker: its node id, and the instance of its data directory.
	// Required.
	Self quorum.Server
	// Broker is what it registers: addresses, zone and version. NodeID and Instance
	// are taken from Self. Peer is required.
	Broker catalog.Broker
	// Book is what it remembers of its cluster. Required.
	Book *Book

	// Found makes this broker found a cluster if it belongs to none. With Join it
	// does so only once every other address has answered that it belongs to none,
	// so that all brokers may be started at once with the same list.
	Found bool
	// Join are peer addresses (host:port) of brokers of the cluster. A broker that
	// belongs to one needs them only if the others have changed their addresses.
	Join []string
	// Import is what a single broker that founds a cluster has. Nil: nothing.
	Import *catalog.State
	// Settings are those of a cluster that is founded.
	Settings catalog.Settings

	// Peer and Node carry what is said and the groups. Required. The book's Cluster
	// and Resolve are those of Peer. Both are the caller's to close, after the
	// Cluster.
	Peer *peer.Transport
	Node *quorum.Node
	// NewMachine makes the machine of a group of streams, and what is to be told of
	// its leadership; it may be nil. Started, if it is not nil, is called with the
	// group once it is open, and before anybody else gets it. Required.
	NewMachine func(group uint32) (m quorum.Machine, onLeader func(quorum.Leadership), err error)
	Started    func(group uint32, g *quorum.Group)
	// Stopped is called when a replica of a group has been closed here, and with
	// removed when nothing of the group is to be here: what its machine has kept is
	// to go, if there is any. Nil: nobody cares.
	Stopped func(ctx context.Context, group uint32, removed bool) error
	// MoveShard brings a durable shard that one broker owns to this one: it copies
	// what the owner has, has the owner stop, copies the rest, and returns when
	// this broker could serve it. It may be called again after an error, and after
	// a restart. Nil: such shards cannot be moved.
	MoveShard func(ctx context.Context, m ShardMove) error

	// Served returns once this broker serves what its catalog has. Nil: it does when
	// it has the catalog.
	Served func(ctx context.Context) error

	Timings Timings
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
	// Log is told what happens. Nil: nobody is.
	Log *slog.Logger
}

// Timings are how often things are looked at. Zero fields get the defaults in
// brackets.
type Timings struct {
	Exchange time.Duration // how often brokers tell each other about themselves [5 s]
	Retry    time.Duration // what did not work is tried again [1 s]
	Call     time.Duration // an answer of another broker is waited for [2 s]
	Change   time.Duration // a change of a group's members is waited for [10 s]
	Propose  time.Duration // a command is tried for, if its context has no end [10 s]
	Settle   time.Duration // a leader is left alone before it is moved for balance [10 s]
}

func (t Timings) withDefaults() Timings {
	return Timings{
		Exchange: cmp.Or(t.Exchange, 5*time.Second), Retry: cmp.Or(t.Retry, time.Second), Call: cmp.Or(t.Call, 2*time.Second),
		Change: cmp.Or(t.Change, 10*time.Second), Propose: cmp.Or(t.Propose, 10*time.Second), Settle: cmp.Or(t.Settle, 10*time.Second),
	}
}

// ShardMove is a shard that comes to this broker.
type ShardMove struct {
	Entry catalog.Entry
	Shard uint32
	From  string // node
	Epoch uint64 // of the owner that it comes from
}

// Validate reports every problem of the configuration at once.
func (c *Config) Validate() error {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("cluster: "+format, args...))
		}
	}
	b := c.Broker
	b.NodeID, b.Instance = c.Self.Node, c.Self.Instance
	if err := b.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("cluster: this broker: %w", err))
	}
	if err := c.Settings.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("cluster: settings: %w", err))
	}
	add(c.Book == nil || c.Peer == nil || c.Node == nil || c.NewMachine == nil, "want a book, a peer transport, a node and machines")
	add(!c.Found && len(c.Join) == 0 && c.Book != nil && c.Book.Cluster() == "", "this broker belongs to no cluster: want it to found one, or whom to join")
	t := c.Timings
	add(min(t.Exchange, t.Retry, t.Call, t.Change, t.Propose, t.Settle) < 0, "a time is negative")
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	c.Broker.NodeID, c.Broker.Instance = c.Self.Node, c.Self.Instance
	c.Timings = c.Timings.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
