package catalog

import (
	"cmp"
	"fmt"
	"slices"
)

func (SealStream) kind() Kind { return "seal_stream" }

func (c SealStream) apply(t *transition) error {
	have, err := t.dying(c.Name, c.Incarnation)
	if have == nil || err != nil {
		return err
	}
	if have.Deleting {
		t.answer(have)
		return nil
	}
	e := *have
	e.Deleting = true
	for i := range e.Places {
		if e.Places[i].Moving != "" {
			e.Places = slices.Clone(e.Places)
			e.Places[i].Moving = ""
		}
	}
	t.setEntry(&e)
	t.answer(&e)
	return nil
}

// dying finds a stream that is to be deleted; without an entry and without an
// error it was deleted before.
func (t *transition) dying(n Name, incarnation string) (*Entry, error) {
	have := t.old.entries[n.String()]
	if have != nil && (incarnation == "" || have.Incarnation == incarnation) {
		return have, nil
	}
	if incarnation != "" && t.old.Buried(incarnation) {
		return nil, nil
	}
	return nil, fmt.Errorf("catalog: delete stream %s: %w", n, ErrNotFound)
}

func (ReportEnds) kind() Kind { return "report_ends" }

func (c ReportEnds) apply(t *transition) error {
	have, err := t.dying(c.Name, c.Incarnation)
	if have == nil || err != nil {
		return err
	}
	if !have.Deleting {
		return &InvalidError{Name: c.Name, Err: fmt.Errorf("ends reported, and it is not being deleted")}
	}
	e := *have
	e.Ends = slices.Clone(have.Ends)
	for _, r := range c.Ends {
		if r.Shard >= e.Spec.Shards {
			return &InvalidError{Name: c.Name, Err: fmt.Errorf("no shard %d: there are %d", r.Shard, e.Spec.Shards)}
		}
		i, found := slices.BinarySearchFunc(e.Ends, r, func(a, b ShardEnd) int { return cmp.Compare(a.Shard, b.Shard) })
		switch {
		case !found:
			e.Ends = slices.Insert(e.Ends, i, r)
		case e.Ends[i].End < r.End:
			e.Ends[i] = r // whoever saw more is right: no offset may be used again
		}
	}
	t.answer(&e)
	if len(e.Ends) == int(e.Spec.Shards) {
		ends := make([]uint64, len(e.Ends))
		for i := range e.Ends {
			ends[i] = e.Ends[i].End
		}
		t.bury(&e, ends)
		return nil
	}
	if !slices.Equal(e.Ends, have.Ends) {
		t.setEntry(&e)
	}
	return nil
}

func (DeleteStream) kind() Kind { return "delete_stream" }

func (c DeleteStream) apply(t *transition) error {
	have, err := t.dying(c.Name, c.Incarnation)
	if have == nil || err != nil {
		return err
	}
	if len(c.Ends) != int(have.Spec.Shards) {
		return &InvalidError{Name: c.Name, Err: fmt.Errorf("ends of %d shards given, the stream has %d", len(c.Ends), have.Spec.Shards)}
	}
	ends := slices.Clone(c.Ends)
	for _, known := range have.Ends {
		ends[known.Shard] = max(ends[known.Shard], known.End)
	}
	t.answer(have)
	t.bury(have, ends)
	return nil
}

// bury removes a stream whose shards have ended, and leaves a grave.
func (t *transition) bury(e *Entry, ends []uint64) {
	g := grave{name: e.Spec.Name, floor: e.floor, floors: make([]uint64, max(len(ends), len(e.floors)))}
	for i := range g.floors {
		g.floors[i] = e.firstOffset(i) // a floor never sinks
		if i < len(ends) {
			g.floors[i] = max(g.floors[i], saturated(ends[i], 1))
		}
	}
	t.removeEntry(e.Spec.Name)
	t.dig(g)
	if t.old.cluster != "" {
		t.next.buried = bounded(append(slices.Clone(t.next.buried), e.Incarnation), maxBuried)
	}
}
