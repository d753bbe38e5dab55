package replica

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
)

// Group is this broker's replica of one quorum group: the machine that its entries are
// applied to, and who proposes them. It is a quorum.Machine and a quorum.Interrupter.
// Recover, Apply, Snapshot and Restore belong to the quorum group; everything else may
// be called from anywhere.
type Group struct {
	cfg Config
	raft
	proposer *proposer

	mu       sync.RWMutex // guards the maps, and serving's changes against those of the maps
	byKey    map[ShardKey]*shard
	bySlot   map[uint32]*shard
	nextSlot uint32 // the applying goroutine's
	serving  atomic.Bool

	// Entries up to applied are in the shards, those up to begun may be. 0: it is not known.
	begun, applied atomic.Uint64

	stuck   atomic.Pointer[stuck]
	touched []*shard // scratch of Apply

	leadership mailbox
	repairs    chan struct{} // wakes the repairer; capacity 1

	ctx     context.Context // ends with Interrupt or Close
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	started atomic.Bool
	closing sync.Once
}

// stuck is why entries cannot be applied.
type stuck struct{ err error }

// New makes a group without a state. Give it to quorum.Node.Open as the machine, with
// OnLeader, then call Start with the opened group.
func New(cfg Config) (*Group, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	g := &Group{
		cfg: cfg, byKey: make(map[ShardKey]*shard), bySlot: make(map[uint32]*shard),
		leadership: mailbox{wake: make(chan struct{}, 1)}, repairs: make(chan struct{}, 1),
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.proposer = newProposer(g)
	return g, nil
}

// Start begins to propose and to serve through the group that was opened with g as its
// machine.
func (g *Group) Start(q *quorum.Group) { g.start(raftGroup{q}) }

func (g *Group) start(r raft) {
	g.raft = r
	g.started.Store(true)
	g.tasks.Go(g.proposer.answer)
	g.tasks.Go(g.lead)
	g.tasks.Go(g.repairing)
	g.tasks.Go(g.trimming)
}

// Serving says whether this broker leads and has applied everything that was committed
// before: its shards take subscriptions and publishes.
func (g *Group) Serving() bool { return g.serving.Load() }

// Shard is a shard of the group; false: this replica does not have it, or not yet.
func (g *Group) Shard(key ShardKey) (*stream.Shard, bool) {
	if s := g.find(key); s != nil {
		return s.Shard, true
	}
	return nil, false
}

func (g *Group) find(key ShardKey) *shard {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.byKey[key]
}

// appliedUpTo is how far the shards are at least. 0: nobody knows.
func (g *Group) appliedUpTo() uint64 {
	at := g.applied.Load()
	if g.started.Load() { // and what is not applied here after a restart was before
		at = max(at, g.State().Applied)
	}
	return at
}

// all are the shards by slot.
func (g *Group) all() []*shard {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.SortedFunc(maps.Values(g.bySlot), func(a, b *shard) int { return int(int64(a.slot) - int64(b.slot)) })
}

// ShardInfo is a shard at a glance.
type ShardInfo struct {
	Opening
	End    uint64 // offset after the last record
	Oldest uint64
	Sealed bool
	Err    error // why it is not whole here, and being repaired; nil: it is
}

// Shards describes all shards, by key.
func (g *Group) Shards() []ShardInfo {
	all := g.all()
	out := make([]ShardInfo, len(all))
	for i, s := range all {
		out[i] = ShardInfo{Opening: s.opening(), End: s.Mark(), Oldest: s.Oldest(), Sealed: s.sealed.Load(), Err: s.broken()}
	}
	slices.SortFunc(out, func(a, b ShardInfo) int { return compareKeys(a.Key, b.Key) })
	return out
}

// Status is a group at a glance.
type Status struct {
	Serving   bool
	Shards    int
	Repairing int   // shards that are being fetched from other brokers
	Stuck     error // why entries cannot be applied now; nil: they can
}

// Status describes the group.
func (g *Group) Status() Status {
	st := Status{Serving: g.Serving(), Stuck: g.Stuck()}
	for _, s := range g.all() {
		st.Shards++
		if s.broken() != nil {
			st.Repairing++
		}
	}
	return st
}

// Stuck is why entries cannot be applied now, or nil.
func (g *Group) Stuck() error {
	if s := g.stuck.Load(); s != nil {
		return s.err
	}
	return nil
}

// Interrupt lets an Apply that waits for the disk and a Restore return.
func (g *Group) Interrupt() { g.stop() }

// Close answers every publish, ends readers and closes all logs. The quorum group is
// closed before. Readers are waited for as long as ctx lasts.
func (g *Group) Close(ctx context.Context) error {
	var err error
	g.closing.Do(func() {
		g.stop()
		g.pause()
		g.proposer.close()
		g.tasks.Wait()
		for _, s := range g.all() {
			if closeErr := s.shut(ctx, stream.EndMoved); closeErr != nil && err == nil {
				err = fmt.Errorf("replica: group %d: close shard %s: %w", g.cfg.Group, s.key, closeErr)
			}
		}
	})
	return err
}

// raft is what a group needs of its quorum group.
type raft interface {
	Propose(data []byte) proposal
	State() quorum.State
	Ready(ctx context.Context) error
	Transfer(ctx context.Context, s quorum.Server) error
}

// proposal is a quorum.Proposal.
type proposal interface {
	Done() <-chan struct{}
	Result() (any, error)
}

type raftGroup struct{ *quorum.Group }

func (r raftGroup) Propose(data []byte) proposal { return r.Group.Propose(data) }
