package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Group is this server's replica of one group. Everything may be called from anywhere.
type Group struct {
	n   *Node
	id  uint32
	cfg GroupConfig
	slg *slog.Logger

	raft      *raft.Raft
	log       *logStore
	stable    *stableStore
	snaps     *snapStore
	fsm       *fsm
	trans     *transport
	inbox     *inbox
	watch     *watch
	asked     *proposals
	leader    *leadership
	announcer *announcer

	passed    atomic.Uint64 // entries up to here are not the machine's, beyond what it has applied
	beating   atomic.Bool   // a heartbeat of a new term is being taken
	snapping  atomic.Bool   // a snapshot is being taken
	snapped   time.Time     // when the node last began one; the ticker's
	impatient impatience

	members chan struct{} // holds one token: who has it changes members
	closing chan struct{} // closed when Close begins
	ended   chan struct{} // closed when raft has ended
	closed  chan struct{} // closed when everything has
	once    sync.Once
	running sync.WaitGroup
	runMu   sync.Mutex // orders run and the wait for running
}

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
	Applied     uint64 // by the machine, or not for it
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
func (g *Group) State() State {
	commit := g.raft.CommitIndex()
	s := State{
		Term: g.raft.CurrentTerm(), Applied: g.applied(commit), Commit: commit, Last: g.raft.LastIndex(),
		Voter: g.voter(), Restoring: g.fsm.busy.Load(),
	}
	if stuck := g.watch.stuck(); stuck != nil {
		s.Stuck = stuck
	}
	leads := g.raft.State() == raft.Leader
	s.Leading = leads && s.Stuck == nil
	if !leads {
		s.LastContact = g.raft.LastContact()
	}
	if _, id := g.raft.LeaderWithID(); id != "" && (!leads || s.Leading) {
		var err error
		s.Leader, err = ParseServer(string(id))
		s.LeaderKnown = err == nil
	}
	return s
}

// Propose hands an entry to the group. It never waits for a disk or the network; the
// order of calls is that of the entries. data must not be changed any more.
func (g *Group) Propose(data []byte) *Proposal {
	if len(data) > MaxEntryBytes {
		return failed(fmt.Errorf("%w: %d bytes", ErrTooLarge, len(data)))
	}
	return g.put(func() raft.ApplyFuture { return g.raft.ApplyLog(raft.Log{Data: data}, 0) })
}

func (g *Group) put(give func() raft.ApplyFuture) *Proposal {
	select {
	case <-g.closing:
		return failed(ErrClosed)
	default:
	}
	if stuck := g.watch.stuck(); stuck != nil {
		return failed(stuck)
	}
	if g.raft.State() != raft.Leader {
		return failed(ErrNotLeader)
	}
	return g.asked.put(give)
}

// Ready returns when this server leads and its machine has applied all that earlier
// leaders committed.
func (g *Group) Ready(ctx context.Context) error {
	_, err := g.put(func() raft.ApplyFuture {
		f := g.raft.Barrier(0)
		endWith(f, g.ended)
		return barrier{f}
	}).Wait(ctx)
	if err == nil {
		g.announcer.applied()
	}
	return err
}

// barrier is raft's future for one, whose answer is empty.
type barrier struct{ raft.Future }

func (barrier) Index() uint64 { return 0 }
func (barrier) Response() any { return nil }

// run starts a goroutine that Close waits for. It returns false when the group has closed.
func (g *Group) run(f func()) bool {
	g.runMu.Lock()
	defer g.runMu.Unlock()
	select {
	case <-g.ended:
		return false
	default:
	}
	g.running.Go(f)
	return true
}

func (g *Group) muted() bool { return g.watch.muted() }

func (g *Group) proposed(took time.Duration, err error) {
	if m := g.n.cfg.Metrics.Proposed; m != nil {
		m(g.id, took, err)
	}
}

// installing and installed bracket the install of a leader's snapshot.
func (g *Group) installing(i *install) {
	g.fsm.from.Store(&i.from)
	g.slg.Info("installing a snapshot", "from", i.from.String(), "index", i.index)
}

func (g *Group) installed(index uint64, took time.Duration, err error) {
	if m := g.n.cfg.Metrics.Installed; m != nil {
		m(g.id, took, err)
	}
	if err != nil {
		g.slg.Warn("snapshot was not installed; the leader tries again", "index", index, "took", took, "err", err)
		return
	}
	g.slg.Info("snapshot installed", "index", index, "took", took)
}

func (g *Group) damaged(path, reason string, err error) error {
	return &DamagedError{Group: g.id, Path: path, Reason: reason, Err: err}
}
