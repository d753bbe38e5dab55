package wal

// cache holds a store's latest entries in memory. It is guarded by Entries.mu.
type cache struct {
	entries []Entry // the last ones held
	bytes   int64
	limit   int64
}

// entryOverhead is what an entry takes beside its bytes.
const entryOverhead = 112

func cachedSize(e *Entry) int64 { return entryOverhead + int64(len(e.Data)+len(e.Ext)) }

// get returns the entry with an index, of a store that ends at last.
func (c *cache) get(index, last uint64) (Entry, bool) {
	back := last - index // from the end
	if n := uint64(len(c.entries)); back < n {
		return c.entries[n-1-back], true
	}
	return Entry{}, false
}

func (c *cache) add(entries []Entry) {
	for i := range entries {
		c.bytes += cachedSize(&entries[i])
	}
	c.entries = append(c.entries, entries...)
	c.shrink()
}

// shrink drops the oldest until the rest is within the limit.
func (c *cache) shrink() {
	n := 0
	for n < len(c.entries) && c.bytes > c.limit {
		c.bytes -= cachedSize(&c.entries[n])
		n++
	}
	c.drop(n)
}

// drop forgets the first n; their room is reused when the slice is grown next.
func (c *cache) drop(n int) {
	clear(c.entries[:n])
	c.entries = c.entries[n:]
	if len(c.entries) == 0 {
		c.entries = nil
	}
}

func (c *cache) removeFrom(index, last uint64) {
	n := len(c.entries)
	for n > 0 && last-uint64(len(c.entries)-n) >= index {
		n--
		c.bytes -= cachedSize(&c.entries[n])
	}
	clear(c.entries[n:])
	c.entries = c.entries[:n]
}

func (c *cache) removeTo(index, last uint64) {
	n := 0
	for n < len(c.entries) && last-uint64(len(c.entries)-1-n) < index {
		c.bytes -= cachedSize(&c.entries[n])
		n++
	}
	c.drop(n)
}

// shareCacheLocked gives each store an equal part of what may be cached.
func (l *Log) shareCacheLocked() {
	if len(l.stores) == 0 {
		return
	}
	limit := max(l.cfg.CacheBytes, 0) / int64(len(l.stores))
	for _, e := range l.stores {
		e.mu.Lock()
		e.cache.limit = limit
		e.cache.shrink()
		e.mu.Unlock()
	}
}
