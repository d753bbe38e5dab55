package catalog

import (
	"errors"
	"fmt"
	"slices"
)

// reservations are what a memory stream's shards have asked for since the
// catalog was opened; what a shard has not asked for it does not need yet.
type reservations struct {
	byShard []uint64
}

// reservationsOf returns the reservations of a memory stream. The caller holds
// c.mu.
func (c *Catalog) reservationsOf(e *Entry) *reservations {
	r := c.asked[e.Incarnation]
	if r == nil {
		// Nobody has asked since the start: its shards go on from their marks.
		r = &reservations{byShard: e.StartOffsets()}
		c.asked[e.Incarnation] = r
	}
	return r
}

// Reserve makes sure that the offsets of a memory shard below upTo will never be
// used again, however the broker ends, and returns the mark that is persisted:
// the shard may hand out every offset below it. A shard asks before it hands out
// an offset at its mark; it does well to ask early and in the background.
//
// A write reserves a whole block, and a block for every other memory shard that
// is short, so that a broker with many of them does not write once for each.
func (c *Catalog) Reserve(n Name, shard uint32, upTo uint64) (mark uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	have := old.entries[n.String()]
	switch {
	case have == nil:
		return 0, fmt.Errorf("catalog: reserve offsets of stream %s: %w", n, ErrNotFound)
	case have.Spec.Durability != Memory:
		return 0, &InvalidError{Name: n, Err: errors.New("only memory streams reserve offsets")}
	case shard >= have.Spec.Shards:
		return 0, &InvalidError{Name: n, Err: fmt.Errorf("no shard %d: there are %d", shard, have.Spec.Shards)}
	}
	asked := c.reservationsOf(have)
	asked.byShard[shard] = max(asked.byShard[shard], upTo)
	if upTo <= have.Reserved[shard] {
		return have.Reserved[shard], nil
	}
	next := old.copy()
	for key, e := range old.entries {
		if raised := c.raise(e); raised != nil {
			next.entries[key] = raised
		}
	}
	if err := c.commit(old, next); err != nil {
		return 0, err
	}
	return next.entries[n.String()].Reserved[shard], nil
}

// raise returns the entry with a full block reserved for each shard that has
// less than half of one left, or nil if none has. The caller holds c.mu.
func (c *Catalog) raise(e *Entry) *Entry {
	if e.Spec.Durability != Memory {
		return nil
	}
	asked := c.reservationsOf(e).byShard
	reserved := slices.Clone(e.Reserved)
	short := false
	for i, mark := range reserved {
		if mark < saturated(asked[i], c.cfg.ReserveBlock/2) {
			reserved[i] = max(mark, saturated(asked[i], c.cfg.ReserveBlock))
			short = true
		}
	}
	if !short {
		return nil
	}
	r := *e
	r.Reserved = reserved
	return &r
}
