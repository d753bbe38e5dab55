package catalog

import (
	"errors"
	"fmt"
	"slices"
)

func (CreateStream) kind() Kind { return "create_stream" }

func (c CreateStream) apply(t *transition) error {
	spec := c.Spec.Normalized()
	if err := spec.Validate(); err != nil {
		return err
	}
	if have := t.old.entries[spec.Name.String()]; have != nil {
		switch {
		case have.Deleting:
			return fmt.Errorf("catalog: create stream %s: %w", spec.Name, ErrDeleting)
		case c.RequestID != "" && c.RequestID == have.RequestID, have.Spec == spec:
			t.answer(have)
			return nil
		}
		return fmt.Errorf("catalog: create stream %s: %w", spec.Name, ErrExists)
	}
	if len(t.old.entries) >= t.limits.MaxStreams {
		return fmt.Errorf("catalog: create stream %s: %w (%d)", spec.Name, ErrLimit, t.limits.MaxStreams)
	}
	switch {
	case !incarnationPattern.MatchString(c.Incarnation):
		return &InvalidError{Name: spec.Name, Err: fmt.Errorf("incarnation %q: want 32 hexadecimal digits", c.Incarnation)}
	case t.old.cluster != "" && len(c.RequestID) > maxText:
		return &InvalidError{Name: spec.Name, Err: fmt.Errorf("request id of %d bytes: at most %d", len(c.RequestID), maxText)}
	}
	places, err := t.place(&spec, c.Places, spec.Shards)
	if err != nil {
		return err
	}
	g := t.exhume(spec.Name)
	e := (&Entry{
		Spec: spec, Incarnation: c.Incarnation, CreatedAt: t.at, RequestID: c.RequestID, Places: places,
		floors: g.floors, floor: g.floor,
	}).withShards(spec.Shards)
	t.reserveBlocks(e, 0)
	t.setEntry(e)
	t.answer(e)
	t.result.Created = true
	return nil
}

// reserveBlocks gives the shards of a memory stream from the given one on their
// first blocks of offsets. The entry is new.
func (t *transition) reserveBlocks(e *Entry, from int) {
	for i := from; i < len(e.Reserved); i++ {
		e.Reserved[i] = saturated(e.FirstOffsets[i], t.limits.ReserveBlock)
	}
}

// place checks where n new shards of a stream shall be, and completes it.
func (t *transition) place(spec *StreamSpec, places []ShardPlace, n uint32) ([]ShardPlace, error) {
	if t.old.cluster == "" {
		switch {
		case spec.Durability == Quorum:
			return nil, &InvalidError{Name: spec.Name, Err: errQuorumAlone}
		case len(places) != 0:
			return nil, &InvalidError{Name: spec.Name, Err: errors.New("a single broker places no shards")}
		}
		return nil, nil
	}
	if len(places) != int(n) {
		return nil, fmt.Errorf("catalog: stream %s: %w: %d places for %d shards", spec.Name, ErrPlacement, len(places), n)
	}
	out := make([]ShardPlace, n)
	for i, p := range places {
		b := t.old.brokers[p.Owner]
		switch {
		case spec.Durability == Quorum:
			if p.Group == MetadataGroup || p.Group > t.limits.Groups || p.Owner != "" {
				return nil, fmt.Errorf("catalog: stream %s: %w: group %d of %d, owner %q", spec.Name, ErrPlacement, p.Group, t.limits.Groups, p.Owner)
			}
			out[i] = ShardPlace{Group: p.Group}
		case p.Group != 0 || b == nil || b.Draining && t.old.anyStays():
			return nil, fmt.Errorf("catalog: stream %s: %w: group %d, owner %q", spec.Name, ErrPlacement, p.Group, p.Owner)
		default:
			out[i] = ShardPlace{Owner: p.Owner, Instance: b.Instance, Epoch: 1}
		}
	}
	return out, nil
}

// anyStays says that some broker is not draining.
func (s *State) anyStays() bool {
	for _, b := range s.brokers {
		if !b.Draining {
			return true
		}
	}
	return false
}

func (UpdateStream) kind() Kind { return "update_stream" }

func (c UpdateStream) apply(t *transition) error {
	have := t.old.entries[c.Name.String()]
	switch {
	case have == nil || c.Incarnation != "" && c.Incarnation != have.Incarnation:
		return fmt.Errorf("catalog: update stream %s: %w", c.Name, ErrNotFound)
	case have.Deleting:
		return fmt.Errorf("catalog: update stream %s: %w", c.Name, ErrDeleting)
	}
	want := c.Change.apply(have.Spec)
	if want.Shards < have.Spec.Shards {
		return &InvalidError{Name: c.Name, Err: fmt.Errorf("shards %d: there are %d, and they may only grow", want.Shards, have.Spec.Shards)}
	}
	if err := want.Validate(); err != nil {
		return err
	}
	if want == have.Spec {
		t.answer(have)
		return nil
	}
	e := *have
	if added := want.Shards - have.Spec.Shards; added != 0 {
		places, err := t.place(&want, c.Places, added)
		if err != nil {
			return err
		}
		e = *have.withShards(want.Shards)
		if t.old.cluster != "" {
			e.Places = slices.Concat(have.Places, places)
		}
		t.reserveBlocks(&e, int(have.Spec.Shards))
	}
	e.Spec = want
	t.setEntry(&e)
	t.answer(&e)
	return nil
}

func (ReserveOffsets) kind() Kind { return "reserve_offsets" }

// apply raises marks. One of a stream that is gone, or of a shard that has moved,
// is no use to anybody and is passed over.
func (c ReserveOffsets) apply(t *transition) error {
	for _, m := range c.Marks {
		have := t.next.entries[m.Name.String()]
		switch {
		case have == nil || have.Incarnation != m.Incarnation || int(m.Shard) >= len(have.Reserved):
			continue
		case have.Reserved[m.Shard] >= m.UpTo:
			continue
		case have.Places != nil && have.Places[m.Shard].Epoch != m.Epoch:
			continue
		}
		e := *have
		e.Reserved = slices.Clone(have.Reserved)
		e.Reserved[m.Shard] = m.UpTo
		t.setEntry(&e)
	}
	return nil
}
