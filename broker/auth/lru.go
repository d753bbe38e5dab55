package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// cacheKey is a hash over tenant and token. The token itself is not kept.
type cacheKey [sha256.Size]byte

func keyOf(tenant, token string) cacheKey {
	// The length keeps bytes from being shifted between the two.
	buf := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(tenant)+len(token)), uint64(len(tenant)))
	buf = append(buf, tenant...)
	buf = append(buf, token...)
	return sha256.Sum256(buf)
}

// outcome is what a verification came to: one of the two pointers is set.
type outcome struct {
	principal *Principal
	refusal   *Error
	set       *KeySet   // the keys it was decided with
	until     time.Time // not to be used from then on
}

// lru remembers outcomes, the least recently used one goes first. Not safe for
// concurrent use; the Verifier's mutex guards it.
type lru struct {
	max    int
	byKey  map[cacheKey]*lruEntry
	newest *lruEntry // ends of a list through older and newer
	oldest *lruEntry
}

type lruEntry struct {
	key          cacheKey
	out          outcome
	older, newer *lruEntry
}

func newLRU(limit int) *lru {
	return &lru{max: limit, byKey: make(map[cacheKey]*lruEntry)}
}

// get returns a remembered outcome if it is still good for this key set and
// time; one that is not is forgotten.
func (c *lru) get(key cacheKey, set *KeySet, now time.Time) (outcome, bool) {
	e, ok := c.byKey[key]
	if !ok {
		return outcome{}, false
	}
	c.remove(e)
	if e.out.set != set || !now.Before(e.out.until) {
		return outcome{}, false
	}
	c.insert(e)
	return e.out, true
}

func (c *lru) put(key cacheKey, out outcome) {
	if e, ok := c.byKey[key]; ok {
		c.remove(e)
	}
	c.insert(&lruEntry{key: key, out: out})
	for len(c.byKey) > c.max {
		c.remove(c.oldest)
	}
}

// insert puts an entry that is not in the list at its newest end.
func (c *lru) insert(e *lruEntry) {
	c.byKey[e.key] = e
	e.older, e.newer = c.newest, nil
	if c.newest != nil {
		c.newest.newer = e
	} else {
		c.oldest = e
	}
	c.newest = e
}

func (c *lru) remove(e *lruEntry) {
	delete(c.byKey, e.key)
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		c.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		c.oldest = e.newer
	}
	e.older, e.newer = nil, nil
}

func (c *lru) len() int { return len(c.byKey) }
