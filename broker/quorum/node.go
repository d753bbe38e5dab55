package quorum

import (
	"context"
	"errors"
)

// Node is this broker's part in all groups that it is a member of.
type Node struct{ cfg NodeConfig }

// GroupConfig is one group.
type GroupConfig struct {
	Machine Machine
	// Bootstrap are the voters that the group begins with. It only counts while this
	// server holds nothing of the group; all of them may be given the same list. A server
	// that joins a group that exists is given none: the leader adds it.
	Bootstrap []Server
	// OnLeader is told of each change, in order, by one goroutine (nil: nobody is). It
	// must return soon. Use Group.Ready before serving.
	OnLeader func(Leadership)
}

var errSkeleton = errors.New("quorum: not there yet")

// NewNode makes a node without groups. Removals that a crash interrupted are finished.
func NewNode(cfg NodeConfig) (*Node, error) { return &Node{cfg: cfg}, nil }

// Open opens this server's replica of a group, or makes an empty one. Damage is a *DamagedError.
func (n *Node) Open(ctx context.Context, id uint32, cfg GroupConfig) (*Group, error) {
	return nil, errSkeleton
}

// Group is the open group with this id, or nil.
func (n *Node) Group(id uint32) *Group { return nil }

// Remove deletes this server's state of a group, which must not be open. The group
// must have removed the server from its members before.
func (n *Node) Remove(id uint32) error { return errSkeleton }

// Pressure is for wal.Config.Pressure: groups among the keys take a snapshot, so that
// the log can drop files.
func (n *Node) Pressure(keys []string) {}

// Close gives leaderships away and closes every group. When ctx ends first, what is
// stuck is left to end by itself, and the error says so.
func (n *Node) Close(ctx context.Context) error { return nil }
