package catalog

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
	r, err := c.change(DeleteStream{Name: n, Ends: ends})
	if err != nil {
		return Entry{}, err
	}
	delete(c.asked, r.Entry.Incarnation)
	return *r.Entry, nil
}
