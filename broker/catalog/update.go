package catalog

// Change is what Update may change; nil leaves a setting as it is. Name,
// durability and routing never change.
type Change struct {
	Shards    *uint32    `json:"shards,omitempty"` // may only grow
	Retention *Retention `json:"retention,omitempty"`
	Queue     *Queue     `json:"queue,omitempty"`
	TailBytes *int64     `json:"tail_bytes,omitempty"`
	Fsync     *Fsync     `json:"fsync,omitempty"`
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
	old := c.current.Load().entries[n.String()]
	r, err := c.change(UpdateStream{Name: n, Change: ch})
	if err != nil {
		return Entry{}, err
	}
	e := r.Entry
	if r.Changed && e.Reserved != nil {
		asked := c.reservationsOf(old)
		asked.byShard = append(asked.byShard, e.FirstOffsets[len(asked.byShard):]...)
	}
	return *e, nil
}
