package quorum

import (
	"context"
	"time"
)

// Group is this server's replica of one group. Everything may be called from anywhere.
type Group struct{ id uint32 }

// Member is one server of a group. Who is not a voter learns: it gets every entry and
// has no say.
type Member struct {
	Server
	Voter bool
}

// State is what a replica knows at present.
type State struct {
	Leading     bool // and not stuck
	Leader      Server
	LeaderKnown bool
	Term        uint64
	Applied     uint64 // by the machine
	Commit      uint64
	Last        uint64
	LastContact time.Time // with the leader; zero: never, or it is this server
	Voter       bool      // this server, in the newest configuration
	Restoring   bool      // a snapshot is being installed
	Stuck       error     // a *StuckError; nil: not stuck
}

// ID is the group's.
func (g *Group) ID() uint32 { return g.id }

// State is cheap.
func (g *Group) State() State { return State{} }

// Propose hands an entry to the group. It never waits for a disk or the network; the
// order of calls is that of the entries. data must not be changed any more.
func (g *Group) Propose(data []byte) *Proposal { return failed(errSkeleton) }

// Ready returns when this server leads and its machine has applied all that earlier
// leaders committed.
func (g *Group) Ready(ctx context.Context) error { return errSkeleton }

// Members are those of the newest configuration, which may not be committed yet.
func (g *Group) Members() ([]Member, error) { return nil, errSkeleton }

// CaughtUp says, on the leader, whether a member has all but the last few entries,
// and how many it lacks.
func (g *Group) CaughtUp(s Server) (caughtUp bool, lag uint64) { return false, 0 }

// AddLearner adds a member that has no say. On the leader; so are all changes of
// members, which wait for each other and for their commit.
func (g *Group) AddLearner(ctx context.Context, s Server) error { return errSkeleton }

// Promote makes a learner a voter; ErrBehind as long as it has not caught up.
func (g *Group) Promote(ctx context.Context, s Server) error { return errSkeleton }

// Demote makes a voter a learner.
func (g *Group) Demote(ctx context.Context, s Server) error { return errSkeleton }

// Remove removes a member. A leader that removes itself ceases to lead.
func (g *Group) Remove(ctx context.Context, s Server) error { return errSkeleton }

// Transfer gives leadership to another voter; the zero Server: to the best one.
func (g *Group) Transfer(ctx context.Context, s Server) error { return errSkeleton }

// Snapshot takes one now, so that entries before it can go.
func (g *Group) Snapshot(ctx context.Context) error { return errSkeleton }

// Close gives leadership away and ends the replica; what is on disk stays.
func (g *Group) Close(ctx context.Context) error { return errSkeleton }
