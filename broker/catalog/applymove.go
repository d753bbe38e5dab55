package catalog

import (
	"errors"
	"fmt"
	"slices"
)

func (BeginMove) kind() Kind { return "begin_move" }

func (c BeginMove) apply(t *transition) error {
	e, p, err := c.find(t)
	if err != nil {
		return err
	}
	b, err := t.knownBroker(c.To)
	switch {
	case err != nil:
		return err
	case b.Draining:
		return &BrokerError{Node: c.To, Err: fmt.Errorf("%w: it is being drained", ErrPlacement)}
	case p.Epoch != c.Epoch:
		return c.stale(p)
	case p.Moving == c.To || p.Owner == c.To && p.Instance == b.Instance:
		t.answer(e)
		return nil
	case p.Moving != "":
		return c.stale(p)
	}
	p.Moving = c.To
	t.setPlace(e, c.Shard, p)
	return nil
}

func (FinishMove) kind() Kind { return "finish_move" }

func (c FinishMove) apply(t *transition) error {
	e, p, err := c.find(t)
	if err != nil {
		return err
	}
	b, err := t.knownBroker(c.To)
	switch {
	case err != nil:
		return err
	case p.Owner == c.To && p.Epoch == c.Epoch+1: // done before
		t.answer(e)
		return nil
	case p.Epoch != c.Epoch || p.Moving != c.To:
		return c.stale(p)
	}
	t.setPlace(e, c.Shard, ShardPlace{Owner: c.To, Instance: b.Instance, Epoch: p.Epoch + 1})
	return nil
}

func (CancelMove) kind() Kind { return "cancel_move" }

func (c CancelMove) apply(t *transition) error {
	e, p, err := c.find(t)
	switch {
	case err != nil:
		return err
	case p.Moving == "" && p.Epoch == c.Epoch+1 && p.Owner != c.To: // done before
		t.answer(e)
		return nil
	case p.Epoch != c.Epoch || p.Moving != c.To && p.Moving != "":
		return c.stale(p)
	case p.Moving == "":
		t.answer(e)
		return nil
	}
	// A FinishMove of this move that is still on its way must not count: what its
	// owner takes from now on nobody has copied.
	p.Moving, p.Epoch = "", p.Epoch+1
	t.setPlace(e, c.Shard, p)
	return nil
}

// find is the place of a shard with one owner.
func (m MoveShard) find(t *transition) (*Entry, ShardPlace, error) {
	e := t.old.entries[m.Name.String()]
	switch {
	case e == nil || e.Incarnation != m.Incarnation:
		return nil, ShardPlace{}, fmt.Errorf("catalog: move shard %d of stream %s: %w", m.Shard, m.Name, ErrNotFound)
	case e.Deleting:
		return nil, ShardPlace{}, fmt.Errorf("catalog: move shard %d of stream %s: %w", m.Shard, m.Name, ErrDeleting)
	case int(m.Shard) >= len(e.Places):
		return nil, ShardPlace{}, &InvalidError{Name: m.Name, Err: fmt.Errorf("no shard %d: there are %d", m.Shard, len(e.Places))}
	case e.Places[m.Shard].Group != 0:
		return nil, ShardPlace{}, &InvalidError{Name: m.Name, Err: errors.New("a quorum group moves as a whole")}
	}
	return e, e.Places[m.Shard], nil
}

func (m MoveShard) stale(p ShardPlace) error {
	return fmt.Errorf("catalog: move shard %d of stream %s to %q: %w: owner %q, epoch %d instead of %d, moving to %q",
		m.Shard, m.Name, m.To, ErrStale, p.Owner, p.Epoch, m.Epoch, p.Moving)
}

func (t *transition) setPlace(e *Entry, shard uint32, p ShardPlace) {
	changed := *e
	changed.Places = slices.Clone(e.Places)
	changed.Places[shard] = p
	t.setEntry(&changed)
	t.answer(&changed)
}
