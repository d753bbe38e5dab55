package catalog

import (
	"slices"
	"time"
)

// Entry is a stream as the catalog has it. Immutable: the slices are not to be
// changed.
type Entry struct {
	Spec StreamSpec // normalized
	// Incarnation is random and differs for each stream ever created under the
	// name. It is 32 hexadecimal digits, fit for a directory's name.
	Incarnation string
	// FirstOffsets are the first offsets of this incarnation, one for each shard.
	FirstOffsets []uint64
	// Reserved are, for a memory stream, the persisted marks that no shard's
	// offsets have reached: after a restart a shard goes on from there. Nil for
	// others.
	Reserved  []uint64
	CreatedAt time.Time
	// RequestID is of the request that created the stream; may be empty.
	RequestID string
	// Places are who has the shards, one for each. Nil of a single broker.
	Places []ShardPlace
	// Deleting says that the stream was sealed to be deleted; Ends are the shards
	// whose ends are known, ordered by shard.
	Deleting bool
	Ends     []ShardEnd

	// floors are where shards beyond FirstOffsets would start: those that an
	// earlier incarnation had, then floor for all others.
	floors []uint64
	floor  uint64
}

// StartOffsets are where the shards of a memory stream go on after a restart,
// or start when they are new.
func (e *Entry) StartOffsets() []uint64 {
	out := slices.Clone(e.FirstOffsets)
	for i := range out {
		if i < len(e.Reserved) {
			out[i] = max(out[i], e.Reserved[i])
		}
	}
	return out
}

// firstOffset is where a shard of this incarnation starts, also one that the
// stream does not have yet.
func (e *Entry) firstOffset(shard int) uint64 {
	if shard < len(e.floors) {
		return e.floors[shard]
	}
	return e.floor
}

// withShards returns a copy of the entry with its per-shard values made for n
// shards, n not less than before.
func (e *Entry) withShards(n uint32) *Entry {
	c := *e
	c.Spec.Shards = n
	c.FirstOffsets = make([]uint64, n)
	for i := range c.FirstOffsets {
		c.FirstOffsets[i] = e.firstOffset(i)
	}
	if c.Spec.Durability == Memory {
		c.Reserved = make([]uint64, n)
		copy(c.Reserved, e.Reserved)
	}
	return &c
}
