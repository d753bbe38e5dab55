package replica

import (
	"context"
	"errors"
	"net"

	"felix.dev/felix/broker/stream"
)

var errSkeleton = errors.New("replica: not there yet")

// Group is the machine of one quorum group and its proposer (a quorum.Machine: Recover,
// Apply, Snapshot, Restore).
type Group struct{ cfg Config }

// New makes a group without a state. Give it to quorum.Node.Open as the machine, with
// OnLeader as GroupConfig.OnLeader, then call Start with the opened group.
func New(cfg Config) (*Group, error) { return nil, errSkeleton }

// Serving says whether this broker leads and has applied everything before its term.
func (g *Group) Serving() bool { return false }

// Shard is a shard of the group; false: this replica does not have it (yet).
func (g *Group) Shard(key ShardKey) (*stream.Shard, bool) { return nil, false }

// ShardInfo is a shard at a glance.
type ShardInfo struct {
	Opening
	End    uint64 // offset after the last record
	Oldest uint64
	Sealed bool
	Err    error // why it cannot be written here, or is being repaired; nil: nothing
}

// Shards describes all shards, by key.
func (g *Group) Shards() []ShardInfo { return nil }

// OpenShard makes a shard on all replicas; one that is there already stays as it is.
// The leader's, as are the next three: elsewhere they fail with stream.ErrNotLeader.
func (g *Group) OpenShard(ctx context.Context, o Opening) error { return errSkeleton }

// Configure changes a shard's spec.
func (g *Group) Configure(ctx context.Context, key ShardKey, spec []byte) error { return errSkeleton }

// Seal ends a shard: nothing is appended any more, readers get the rest. It gives the
// offset after the last record, and may be repeated.
func (g *Group) Seal(ctx context.Context, key ShardKey) (end uint64, err error) {
	return 0, errSkeleton
}

// Drop removes a shard and its data on all replicas. It may be repeated.
func (g *Group) Drop(ctx context.Context, key ShardKey) error { return errSkeleton }

// Status is a group at a glance.
type Status struct {
	Serving   bool
	Shards    int
	Repairing int   // shards that are being fetched from other brokers
	Stuck     error // why entries cannot be applied now; nil: they can
}

// Status describes the group.
func (g *Group) Status() Status { return Status{} }

// Stuck is why entries cannot be applied now, or nil.
func (g *Group) Stuck() error { return nil }

// Close answers every publish, ends readers and closes all logs. Close the quorum group first.
func (g *Group) Close(ctx context.Context) error { return errSkeleton }

// ErrNoShard is a shard that the group does not have.
var ErrNoShard = errors.New("replica: the group has no such shard")

// Fetches answers other brokers' fetches, for all groups of a broker:
// peer.Transport.Handle(peer.KindFetch, f.Serve).
type Fetches struct{}

// Serve answers one connection.
func (f *Fetches) Serve(ctx context.Context, c net.Conn) {}

// Add has the shards of a group fetched from; Remove undoes it.
func (f *Fetches) Add(g *Group) {}

// Remove has no more of a group fetched.
func (f *Fetches) Remove(g *Group) {}
