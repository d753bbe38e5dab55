package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// maxPause bounds how long something waits that has failed often.
const maxPause = 10 * time.Second

// replicas are the groups that this broker holds. It opens and closes them as the
// catalog says; each open one has a goroutine that brings its members where they
// are to be, while this broker leads it.
type replicas struct {
	c    *Cluster
	wake kick

	open atomic.Pointer[map[uint32]*replica] // replaced as a whole, under mu

	mu sync.Mutex

	// settled are groups that are not to be here and of which nothing is here. Of the
	// goroutine that follows the catalog.
	settled map[uint32]bool

	cancel context.CancelFunc // of the goroutine that follows the catalog
	done   chan struct{}
}

// replica is one that is open.
type replica struct {
	id    uint32
	group *quorum.Group
	wake  kick                   // its members may have to change
	next  atomic.Pointer[string] // what it does or waits for; for people
	stop  context.CancelFunc
	done  chan struct{}
}

func newReplicas(c *Cluster) *replicas {
	r := &replicas{c: c, wake: newKick(), settled: make(map[uint32]bool)}
	r.open.Store(&map[uint32]*replica{})
	return r
}

func (r *replicas) group(id uint32) (*quorum.Group, bool) {
	have, ok := (*r.open.Load())[id]
	if !ok {
		return nil, false
	}
	return have.group, true
}

// list is all that are open, the metadata group among them, by id.
func (r *replicas) list() []*replica {
	open := *r.open.Load()
	out := make([]*replica, 0, len(open))
	for _, have := range open {
		out = append(out, have)
	}
	slices.SortFunc(out, func(a, b *replica) int { return int(a.id) - int(b.id) })
	return out
}

// look has all of them look at the catalog, and at who is there, again.
func (r *replicas) look() {
	r.wake.now()
	for _, have := range *r.open.Load() {
		have.wake.now()
	}
}

// adopt looks after a group that was opened.
func (r *replicas) adopt(id uint32, g *quorum.Group) {
	ctx, cancel := context.WithCancel(r.c.ctx)
	have := &replica{id: id, group: g, wake: newKick(), stop: cancel, done: make(chan struct{})}
	r.replace(func(open map[uint32]*replica) { open[id] = have })
	r.c.wg.Go(func() {
		defer close(have.done)
		r.c.converge(ctx, have)
	})
}

func (r *replicas) replace(change func(map[uint32]*replica)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := maps.Clone(*r.open.Load())
	change(next)
	r.open.Store(&next)
}

// start begins to follow the catalog.
func (r *replicas) start() {
	ctx, cancel := context.WithCancel(r.c.ctx)
	r.cancel, r.done = cancel, make(chan struct{})
	r.c.wg.Go(func() {
		defer close(r.done)
		r.follow(ctx)
	})
}

// stop closes all but the metadata group's, at the same time.
func (r *replicas) stop(ctx context.Context) error {
	if r.cancel != nil {
		r.cancel()
		longer, cancel := orderly(ctx)
		defer cancel()
		select {
		case <-r.done:
		case <-longer.Done():
			return fmt.Errorf("cluster: close replicas: %w", longer.Err())
		}
	}
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, have := range r.list() {
		wg.Go(func() {
			var err error
			if have.stop(); have.id != catalog.MetadataGroup {
				err = r.shut(ctx, have)
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// follow opens and closes replicas as the catalog changes. What does not work is
// tried again.
func (r *replicas) follow(ctx context.Context) {
	failures := 0
	for {
		changed := r.c.Changed()
		err := r.match(ctx)
		if err != nil && ctx.Err() == nil {
			r.c.cfg.Log.Error("replicas are not as the catalog has them; trying again", "error", err)
		}
		var retry <-chan time.Time
		if failures++; err == nil {
			failures = 0
		} else {
			retry = time.After(jittered(min(r.c.cfg.Timings.Retry*time.Duration(failures), maxPause))) // collected if something comes first
		}
		select {
		case <-changed:
		case <-r.wake:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// match makes the replicas here those of the catalog.
func (r *replicas) match(ctx context.Context) error {
	var errs []error
	st := r.c.State()
	for _, g := range st.Groups() {
		if g.ID == catalog.MetadataGroup {
			continue
		}
		have := (*r.open.Load())[g.ID]
		switch holds := holdsGroup(&g, r.c.cfg.Self); {
		case holds && have == nil:
			delete(r.settled, g.ID)
			errs = append(errs, r.openGroup(ctx, &g))
		case !holds && !r.settled[g.ID]:
			errs = append(errs, r.drop(ctx, g.ID, have))
		}
	}
	return errors.Join(errs...)
}

// holdsGroup tells whether a server is to hold a replica: because the group is
// placed there, or because it is still a member.
func holdsGroup(g *catalog.Group, self quorum.Server) bool {
	return slices.Contains(g.Target, self.Node) || slices.ContainsFunc(g.Members, func(m catalog.Member) bool {
		return m.Node == self.Node && m.Instance == self.Instance
	})
}

// openGroup opens the replica of a group here. A group that nobody has reported on
// has not begun: the broker that founded the cluster, to which alone it was given,
// begins it.
func (r *replicas) openGroup(ctx context.Context, g *catalog.Group) error {
	c := r.c
	m, onLeader, err := c.cfg.NewMachine(g.ID)
	if err != nil {
		return fmt.Errorf("cluster: make machine of group %d: %w", g.ID, err)
	}
	cfg := quorum.GroupConfig{Machine: m, OnLeader: func(l quorum.Leadership) {
		if onLeader != nil {
			onLeader(l)
		}
		c.led(g.ID)
	}}
	if len(g.Members) == 0 && slices.Equal(g.Target, []string{c.cfg.Self.Node}) {
		cfg.Bootstrap = []quorum.Server{c.cfg.Self}
	}
	group, err := c.cfg.Node.Open(ctx, g.ID, cfg)
	if err != nil {
		if damaged, ok := errors.AsType[*quorum.DamagedError](err); ok {
			// B79: it will not mend by itself, and a broker that is half there misleads everybody.
			c.fail(refuse(CodeDamaged, "%v: to have this broker rebuilt from the others, start it with an empty data directory", damaged))
		}
		if c.cfg.Stopped != nil {
			err = errors.Join(err, c.cfg.Stopped(ctx, g.ID, false))
		}
		return fmt.Errorf("cluster: open group %d: %w", g.ID, err)
	}
	if c.cfg.Started != nil {
		c.cfg.Started(g.ID, group)
	}
	r.adopt(g.ID, group)
	c.cfg.Log.Info("opened a replica", "group", g.ID)
	return nil
}

// drop removes what is here of a group that is not to be here: an open replica, or
// what is left of one. It is closed first and confirms nothing from then on; if the
// newest catalog then still says that it is to go, nobody counts on it, now or
// later.
func (r *replicas) drop(ctx context.Context, id uint32, have *replica) error {
	c := r.c
	if have != nil {
		if err := r.shut(ctx, have); err != nil {
			return err
		}
	}
	sync, cancel := context.WithTimeout(ctx, c.cfg.Timings.Change)
	defer cancel()
	if err := c.Sync(sync); err != nil {
		return fmt.Errorf("cluster: group %d is not placed here, and whether that is so is not certain: %w", id, err)
	}
	if g, ok := c.State().Group(id); ok && holdsGroup(&g, c.cfg.Self) {
		return nil // it is to stay after all; the next look opens it
	}
	if err := c.cfg.Node.Remove(id); err != nil {
		return fmt.Errorf("cluster: remove group %d: %w", id, err)
	}
	if c.cfg.Stopped != nil {
		if err := c.cfg.Stopped(ctx, id, true); err != nil {
			return fmt.Errorf("cluster: remove data of group %d: %w", id, err)
		}
	}
	r.settled[id] = true
	if have != nil {
		c.cfg.Log.Info("removed a replica", "group", id)
	}
	return nil
}

// shut closes a replica.
func (r *replicas) shut(ctx context.Context, have *replica) error {
	have.stop()
	longer, cancel := orderly(ctx)
	defer cancel()
	if err := closeGroup(ctx, longer, have.group); err != nil {
		return fmt.Errorf("cluster: close group %d: %w", have.id, err)
	}
	r.replace(func(open map[uint32]*replica) { delete(open, have.id) })
	<-have.done
	var err error
	if r.c.cfg.Stopped != nil {
		err = r.c.cfg.Stopped(longer, have.id, false)
	}
	r.c.leaders.notify()
	return err
}
