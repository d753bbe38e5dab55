package stream

import "sync"

const (
	// claimPublishes and claimBytes bound what one append takes.
	claimPublishes = 64
	claimBytes     = 1 << 20
	// holdBytes is how much is worth writing while an earlier claim is still being
	// synced; less waits for that sync and then shares the next one.
	holdBytes = 256 << 10
)

// queue is what publishers handed in and the sequencer has not taken.
type queue struct {
	mu       sync.Mutex
	idle     sync.Cond // signalled when running or inflight changes
	waiting  []*Publish
	bytes    int
	running  bool
	closed   error    // non-nil: refuse
	inflight []*claim // appended, not committed; oldest first
}

// holds says that what waits is better written together after the sync under way.
// The caller holds queue.mu.
func (s *Shard) holds() bool {
	q := &s.queue
	return len(q.inflight) > 0 && len(q.waiting) < claimPublishes && q.bytes < holdBytes
}

// take cuts the next claim off the queue. The caller holds mu.
func (q *queue) take() *claim {
	n, bytes := 0, 0
	for n < len(q.waiting) && n < claimPublishes && (n == 0 || bytes+len(q.waiting[n].Records.Bytes) <= claimBytes) {
		bytes += len(q.waiting[n].Records.Bytes)
		n++
	}
	c := newClaim()
	c.publishes = append(c.publishes, q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	q.bytes -= bytes
	return c
}

// remove takes back a claim that the log refused.
func (q *queue) remove(c *claim) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.inflight)
	if n == 0 || q.inflight[n-1] != c {
		return false
	}
	q.inflight[n-1] = nil
	q.inflight = q.inflight[:n-1]
	q.idle.Broadcast()
	return true
}
