package catalog

import (
	"maps"
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

// state is everything that the catalog knows. Immutable once it is published.
type state struct {
	entries map[string]*Entry // by Name.String()
	// graves are the deleted names that have no living stream, oldest first, and
	// at most the configured number of them.
	graves []grave
	// floor is where streams start whose name has no grave: beyond everything
	// that was in graves that had to be forgotten.
	floor uint64
}

// grave is what is left of a deleted name: where the next stream of the name has
// to start.
type grave struct {
	name   Name
	floors []uint64 // by shard
	floor  uint64   // of all other shards
}

func newState() *state { return &state{entries: make(map[string]*Entry)} }

// with returns a copy of the state in which e is the entry of its name.
func (s *state) with(e *Entry) *state {
	c := s.copy()
	c.entries[e.Spec.Name.String()] = e
	return c
}

func (s *state) copy() *state {
	c := &state{
		entries: make(map[string]*Entry, len(s.entries)+1),
		graves:  slices.Clone(s.graves),
		floor:   s.floor,
	}
	maps.Copy(c.entries, s.entries)
	return c
}

// exhume takes a name's grave out of the state, or returns what a name without
// one has. The state is the caller's own copy.
func (s *state) exhume(n Name) grave {
	i := slices.IndexFunc(s.graves, func(g grave) bool { return g.name == n })
	if i < 0 {
		return grave{name: n, floor: s.floor}
	}
	g := s.graves[i]
	s.graves = slices.Delete(s.graves, i, i+1)
	return g
}

// bury adds a grave; the oldest beyond limit are forgotten into the floor. The
// state is the caller's own copy.
func (s *state) bury(g grave, limit int) {
	s.graves = append(s.graves, g)
	for len(s.graves) > limit {
		old := s.graves[0]
		s.floor = max(s.floor, old.floor)
		for _, f := range old.floors {
			s.floor = max(s.floor, f)
		}
		s.graves = s.graves[1:]
	}
}
