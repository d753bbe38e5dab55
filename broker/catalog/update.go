package catalog

import (
	"fmt"
)

// Change is what Update may change; nil leaves a setting as it is. Name,
// durability and routing never change.
type Change struct {
	Shards    *uint32 // may only grow
	Retention *Retention
	Queue     *Queue
	TailBytes *int64
	Fsync     *Fsync
}

// apply returns the settings with the change made.
func (ch Change) apply(s StreamSpec) StreamSpec {
	if ch.Shards != nil {
		s.Shards = *ch.Shards
	}
	if ch.Retention != nil {
		s.Retention = *ch.Retention
	}
	if ch.Queue != nil {
		s.Queue = *ch.Queue
	}
	if ch.TailBytes != nil {
		s.TailBytes = *ch.TailBytes
	}
	if ch.Fsync != nil {
		s.Fsync = *ch.Fsync
	}
	return s
}

// Update changes a stream's settings. A change to what is there already writes
// nothing.
func (c *Catalog) Update(n Name, ch Change) (Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	have := old.entries[n.String()]
	if have == nil {
		return Entry{}, fmt.Errorf("catalog: update stream %s: %w", n, ErrNotFound)
	}
	want := ch.apply(have.Spec)
	if want.Shards < have.Spec.Shards {
		return Entry{}, &InvalidError{Name: n, Err: fmt.Errorf("shards %d: there are %d, and they may only grow", want.Shards, have.Spec.Shards)}
	}
	if err := want.Validate(); err != nil {
		return Entry{}, err
	}
	if want == have.Spec {
		return *have, nil
	}
	changed := have
	if want.Shards != have.Spec.Shards {
		changed = have.withShards(want.Shards)
		for i := int(have.Spec.Shards); i < len(changed.Reserved); i++ {
			changed.Reserved[i] = saturated(changed.FirstOffsets[i], c.cfg.ReserveBlock)
		}
	}
	e := *changed
	e.Spec = want
	if err := c.commit(old, old.with(&e)); err != nil {
		return Entry{}, err
	}
	if e.Reserved != nil {
		asked := c.reservationsOf(have)
		asked.byShard = append(asked.byShard, e.FirstOffsets[len(asked.byShard):]...)
	}
	return e, nil
}
