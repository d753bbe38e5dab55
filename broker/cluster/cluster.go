package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// Cluster is this broker's part in its cluster. Everything may be called from
// anywhere.
type Cluster struct {
	cfg     Config
	since   int64 // which start this is; rises from one to the next
	machine *machine
	meta    atomic.Pointer[quorum.Group] // nil before it is open
	known   atomic.Bool                  // Start is done: the catalog is known

	catalog *notifier // another catalog
	leaders *notifier // another leader of some group, as far as it is known here
	table   atomic.Pointer[map[uint32]claim]

	around    *neighbours
	replicas  *replicas
	steward   *steward
	moves     *moves
	committed kick          // an entry of the metadata group was committed here
	asked     atomic.Int64  // when Lacks had the leaders asked last
	readyTerm atomic.Uint64 // in which this broker, leading, has applied all of its predecessors'

	ctx    context.Context // of everything that runs
	cancel context.CancelFunc
	wg     sync.WaitGroup

	ended   chan struct{} // closed when this broker is out of the cluster, or closed
	endOnce sync.Once
	end     error // set before ended is closed

	closeOnce sync.Once
	closeErr  error
}

// New prepares a broker's part in a cluster and answers what other brokers ask. It
// comes before the peer transport serves; Start comes after.
func New(cfg Config) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	if owner := cfg.Book.owner(); cfg.Book.Cluster() != "" && owner != cfg.Self {
		return nil, refuse(CodeForeign, "the data directory is that of broker %s, and this is %s: a broker keeps its node id", owner, cfg.Self)
	}
	if cfg.Import != nil && cfg.Import.Streams() > 0 && cfg.Book.Cluster() == "" && !cfg.Found {
		return nil, refuse(CodeForeign, "this broker has %d streams of its own and cannot join a cluster with them: "+
			"found the cluster with this broker and have the others join it, or start with an empty data directory", cfg.Import.Streams())
	}
	since, err := cfg.Book.begin(cfg.Now().UnixNano())
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		cfg: cfg, since: since, catalog: newNotifier(), leaders: newNotifier(), ended: make(chan struct{}),
		committed: newKick(),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.machine = newMachine(c.catalogChanged, c.fail)
	c.around = newNeighbours(c)
	c.replicas = newReplicas(c)
	c.steward = newSteward(c)
	c.moves = newMoves(c)
	c.table.Store(&map[uint32]claim{})
	c.answerCalls()
	return c, nil
}

// Start finds the cluster, founds it or joins it, and returns when this broker has
// the catalog as it is now, or at least as it was when Start began. Close comes
// after it in any case.
//
// It waits for as long as ctx does: for others to be reached, or to agree. An
// error that is not one of ctx is final.
func (c *Cluster) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.ctx, func() { cancel(c.Err()) })
	defer stop()
	c.around.start()
	c.wg.Go(func() { c.pushCommits(c.ctx) })
	if err := c.enter(ctx); err != nil {
		if why := c.Err(); why != nil {
			err = why
		}
		c.finish(err) // who was not let in does not go on telling others about itself
		return fmt.Errorf("cluster: start broker %s: %w", c.cfg.Self.Node, err)
	}
	c.known.Store(true)
	c.replicas.start()
	c.steward.start()
	c.moves.start()
	c.cfg.Log.Info("the cluster is known", "cluster", c.State().Cluster(), "broker", c.cfg.Self.String(), "brokers", len(c.State().Brokers()))
	return nil
}

// Close gives leaderships away, closes the replicas and ends everything. When ctx
// ends there are no farewells any more, and what hangs for another five seconds is
// left behind; the error says so.
func (c *Cluster) Close(ctx context.Context) error {
	c.closeOnce.Do(func() {
		longer, cancel := orderly(ctx)
		defer cancel()
		c.steward.stop()
		c.moves.stop()
		err := c.replicas.stop(ctx)
		if meta := c.meta.Load(); meta != nil {
			err = errors.Join(err, closeGroup(ctx, longer, meta))
		}
		c.finish(later(CodeClosed, "this broker is shutting down"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.wg.Wait()
		}()
		select {
		case <-done:
		case <-longer.Done():
			err = errors.Join(err, fmt.Errorf("cluster: close: %w", longer.Err()))
		}
		c.closeErr = err
	})
	return c.closeErr
}

// Done is closed when this broker does not belong to the cluster any more: it was
// removed, replaced, or cannot follow the catalog; Err says why. It is closed by
// Close, too.
func (c *Cluster) Done() <-chan struct{} { return c.ended }

// Err is why Done is closed; nil as long as it is not.
func (c *Cluster) Err() error {
	select {
	case <-c.ended:
		return c.end
	default:
		return nil
	}
}

// fail ends this broker's part in the cluster. Whoever owns it sees Done and
// closes it. It waits for nobody: what runs here may call it.
func (c *Cluster) fail(err error) {
	c.cfg.Log.Error("this broker is not part of the cluster any more", "broker", c.cfg.Self.String(), "error", err)
	c.finish(err)
}

func (c *Cluster) finish(err error) {
	c.endOnce.Do(func() {
		c.end = err
		close(c.ended)
		c.cancel()
	})
}

// State is the catalog as this broker has it.
func (c *Cluster) State() *catalog.State { return c.machine.state.Load() }

// Changed is closed when the catalog changes. Take it before State.
func (c *Cluster) Changed() <-chan struct{} { return c.catalog.changed() }

// LeadersChanged is closed when another leader of some group may be known here.
// Take it before Leader.
func (c *Cluster) LeadersChanged() <-chan struct{} { return c.leaders.changed() }

// Group is this broker's replica of a group, if it has one that is open.
func (c *Cluster) Group(id uint32) (*quorum.Group, bool) {
	if id == catalog.MetadataGroup {
		g := c.meta.Load()
		return g, g != nil
	}
	return c.replicas.group(id)
}

// Resolve says where a node's peers reach it.
func (c *Cluster) Resolve(node string) (addr string, ok bool) { return c.cfg.Book.Resolve(node) }

// catalogChanged is told of every other catalog, in order.
func (c *Cluster) catalogChanged(st *catalog.State) {
	self := c.cfg.Self
	if b, ok := st.Broker(self.Node); st.WasRemoved(self.Node, self.Instance) || ok && b.Instance != self.Instance && c.known.Load() {
		c.fail(removedError(st, self))
	}
	c.catalog.notify()
}

func removedError(st *catalog.State, self quorum.Server) error {
	if b, ok := st.Broker(self.Node); ok && b.Instance != self.Instance {
		return refuse(CodeRemoved, "broker %s has another data directory in cluster %s now (%s); this one (%s) is of no use any more: "+
			"remove it to have this broker join anew", self.Node, st.Cluster(), b.Instance, self.Instance)
	}
	return refuse(CodeRemoved, "broker %s was removed from cluster %s: to have it join again, start it with an empty data directory",
		self, st.Cluster())
}
