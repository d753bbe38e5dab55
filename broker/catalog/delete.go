package catalog

import "fmt"

// Delete removes a stream. ends are the ends of its shards: the offset that the
// next record of each would have had. What stays is a grave that makes the next
// stream of the name start beyond them: a cursor of the deleted stream, one that
// stands at its very end included, is older than anything the new one has, and
// every client understands that.
//
// The entry that was removed is returned; its data is the caller's to remove.
func (c *Catalog) Delete(n Name, ends []uint64) (Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	have := old.entries[n.String()]
	if have == nil {
		return Entry{}, fmt.Errorf("catalog: delete stream %s: %w", n, ErrNotFound)
	}
	if len(ends) != int(have.Spec.Shards) {
		return Entry{}, &InvalidError{Name: n, Err: fmt.Errorf("ends of %d shards given, the stream has %d", len(ends), have.Spec.Shards)}
	}
	g := grave{name: n, floor: have.floor, floors: make([]uint64, max(len(ends), len(have.floors)))}
	for i := range g.floors {
		g.floors[i] = have.firstOffset(i) // a floor never sinks
		if i < len(ends) {
			g.floors[i] = max(g.floors[i], saturated(ends[i], 1))
		}
	}
	next := old.copy()
	delete(next.entries, n.String())
	next.bury(g, c.cfg.MaxGraves)
	if err := c.commit(old, next); err != nil {
		return Entry{}, err
	}
	delete(c.asked, have.Incarnation)
	return *have, nil
}
