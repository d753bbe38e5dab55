package catalog

import (
	"errors"
	"fmt"
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
	var cmd ReserveOffsets
	for _, e := range old.entries {
		cmd.Marks = append(cmd.Marks, c.raise(e)...)
	}
	if _, err := c.change(cmd); err != nil {
		return 0, err
	}
	return c.current.Load().entries[n.String()].Reserved[shard], nil
}

// raise asks for a full block for each shard of an entry that has less than half
// of one left. The caller holds c.mu.
func (c *Catalog) raise(e *Entry) (marks []Mark) {
	if e.Spec.Durability != Memory {
		return nil
	}
	for i, asked := range c.reservationsOf(e).byShard {
		if e.Reserved[i] < saturated(asked, c.cfg.ReserveBlock/2) {
			marks = append(marks, Mark{
				Name: e.Spec.Name, Incarnation: e.Incarnation, Shard: uint32(i), UpTo: saturated(asked, c.cfg.ReserveBlock),
			})
		}
	}
	return marks
}
