package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/placement"
)

// movesAtOnce is how many shards are on their way at the same time.
const movesAtOnce = 4

// downAfter is how many exchanges a broker misses before nothing new is placed on
// it. It keeps what it has: brokers do not expire.
const downAfter = 3

// place proposes what the placement wants to be different.
func (s *steward) place(ctx context.Context) (more bool, err error) {
	c := s.c
	st := c.State()
	down := c.down(st)
	is := placed{version: st.Version(), down: strings.Join(slices.Sorted(maps.Keys(down)), ",")}
	if is == s.placed {
		return false, nil
	}
	plan := placement.Plan(placement.View{State: st, Down: down})
	var targets []catalog.GroupTarget
	for _, t := range plan.Targets {
		// A group that has not begun is begun by who it was given to, and nobody else.
		if g, ok := st.Group(t.ID); ok && len(g.Members) > 0 {
			targets = append(targets, t)
		} else {
			more = true
		}
	}
	if len(targets) > 0 {
		for _, t := range targets {
			c.cfg.Log.Info("placing a group", "group", t.ID, "brokers", t.Nodes)
		}
		if err := c.settled(ctx, catalog.SetTargets{Targets: targets}); err != nil {
			return true, fmt.Errorf("set targets: %w", err)
		}
	}
	for _, m := range plan.Cancels {
		if err := c.settled(ctx, catalog.CancelMove{MoveShard: m}); err != nil {
			return true, fmt.Errorf("cancel move of shard: %w", err)
		}
	}
	if err := s.send(ctx, plan.Moves); err != nil {
		return true, err
	}
	if !more {
		s.placed = is // what was proposed just now is another version
	}
	return more, nil
}

// send begins moves of shards with one owner, a few at a time. A shard in memory
// has nothing to copy: its new owner goes on beyond every offset that the old one
// may have used.
func (s *steward) send(ctx context.Context, moves []catalog.MoveShard) error {
	c := s.c
	under := movesUnderWay(c.State())
	for _, m := range moves {
		e, err := c.State().Get(m.Name)
		if err != nil {
			continue // deleted meanwhile
		}
		memory := e.Spec.Durability == catalog.Memory
		if !memory && (under >= movesAtOnce || c.cfg.MoveShard == nil) {
			continue
		}
		if err := c.settled(ctx, catalog.BeginMove{MoveShard: m}); err != nil {
			return fmt.Errorf("begin move of shard %d of %s: %w", m.Shard, m.Name, err)
		}
		if !memory {
			under++
		}
	}
	for _, m := range memoryMoves(c.State()) {
		if err := c.settled(ctx, catalog.FinishMove{MoveShard: m}); err != nil {
			return fmt.Errorf("move shard %d of %s: %w", m.Shard, m.Name, err)
		}
	}
	return nil
}

// settled proposes what was decided on a state that may have changed meanwhile:
// then it is decided anew, from what there is.
func (c *Cluster) settled(ctx context.Context, cmd catalog.Command) error {
	r, err := c.Propose(ctx, cmd)
	if err != nil {
		return err
	}
	for _, passing := range []error{catalog.ErrStale, catalog.ErrPlacement, catalog.ErrDeleting, catalog.ErrNotFound, catalog.ErrImporting} {
		if errors.Is(r.Err, passing) {
			c.cfg.Log.Debug("decided too late", "error", r.Err)
			return nil
		}
	}
	return r.Err
}

// movesUnderWay counts durable shards that are on their way.
func movesUnderWay(st *catalog.State) int {
	n := 0
	for _, e := range st.List() {
		for _, p := range e.Places {
			if p.Moving != "" && e.Spec.Durability != catalog.Memory {
				n++
			}
		}
	}
	return n
}

// memoryMoves are the shards in memory that are on their way.
func memoryMoves(st *catalog.State) []catalog.MoveShard {
	var out []catalog.MoveShard
	for _, e := range st.List() {
		for i, p := range e.Places {
			if p.Moving != "" && e.Spec.Durability == catalog.Memory && !e.Deleting {
				out = append(out, catalog.MoveShard{Name: e.Spec.Name, Incarnation: e.Incarnation, Shard: uint32(i), Epoch: p.Epoch, To: p.Moving})
			}
		}
	}
	return out
}

// View is what new shards are placed upon: the catalog, and which brokers do not
// answer now.
func (c *Cluster) View() placement.View {
	st := c.State()
	v := placement.View{State: st, Down: make(map[string]bool)}
	for _, b := range st.Brokers() {
		if !c.around.up(serverOf(b)) {
			v.Down[b.NodeID] = true
		}
	}
	return v
}

// down are the brokers that have not been heard of for a while.
func (c *Cluster) down(st *catalog.State) map[string]bool {
	out := make(map[string]bool)
	for _, b := range st.Brokers() {
		if !c.around.heardOrNew(serverOf(b), downAfter*c.cfg.Timings.Exchange) {
			out[b.NodeID] = true
		}
	}
	return out
}
