package auth

import (
	"container/list"
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
	max   int
	order list.List // of *lruEntry, front is newest
	byKey map[cacheKey]*list.Element
}

type lruEntry struct {
	key cacheKey
	out outcome
}

func newLRU(limit int) *lru {
	return &lru{max: limit, byKey: make(map[cacheKey]*list.Element)}
}

// get returns a remembered outcome if it is still good for this key set and
// time; one that is not is forgotten.
func (c *lru) get(key cacheKey, set *KeySet, now time.Time) (outcome, bool) {
	el, ok := c.byKey[key]
	if !ok {
		return outcome{}, false
	}
	e := el.Value.(*lruEntry)
	if e.out.set != set || !now.Before(e.out.until) {
		c.remove(el)
		return outcome{}, false
	}
	c.order.MoveToFront(el)
	return e.out, true
}

func (c *lru) put(key cacheKey, out outcome) {
	if el, ok := c.byKey[key]; ok {
		el.Value.(*lruEntry).out = out
		c.order.MoveToFront(el)
		return
	}
	c.byKey[key] = c.order.PushFront(&lruEntry{key: key, out: out})
	for c.order.Len() > c.max {
		c.remove(c.order.Back())
	}
}

func (c *lru) remove(el *list.Element) {
	delete(c.byKey, el.Value.(*lruEntry).key)
	c.order.Remove(el)
}

func (c *lru) len() int { return c.order.Len() }
