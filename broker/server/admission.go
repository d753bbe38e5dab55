package server

import (
	"slices"
	"sync"
	"time"

	"felix.dev/felix/broker/stream"
)

// keepPlaces is how many shards of the server are remembered before those that hold
// nothing are forgotten.
const keepPlaces = 4096

// budget bounds the bytes that something may hold. Whoever asks for more than
// there is passes all the same when nothing else is held, so that no frame is too
// large to ever be served.
type budget struct {
	limit int64
	// least is what each holder counts for at least.
	least int64
	// once is for something that can be stuck while its neighbours are not: after one
	// has waited in vain others do not, until something is released.
	once bool

	mu      sync.Mutex
	used    int64
	waiting []*waiter // oldest first; the first one is never overtaken
	stuck   bool
}

type waiter struct {
	n     int64
	ready chan struct{} // closed under mu once the bytes are the waiter's
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

// newShardBudget is for the publishes of a connection to one shard, most of them at a
// time.
func newShardBudget(limit int64, most int) *budget {
	return &budget{limit: limit, least: limit / int64(max(most, 1)), once: true}
}

// shardBudgets are what all connections together may have under way to each shard: so
// that many of them cannot fill the process's with publishes to one that is stuck.
type shardBudgets struct {
	limit int64

	mu      sync.Mutex
	byPlace map[stream.Place]*budget
}

func newShardBudgets(limit int64) *shardBudgets {
	return &shardBudgets{limit: limit, byPlace: make(map[stream.Place]*budget)}
}

func (s *shardBudgets) budget(p stream.Place) *budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.byPlace[p]; b != nil {
		return b
	}
	if len(s.byPlace) >= keepPlaces {
		for k, b := range s.byPlace {
			if b.idle() {
				delete(s.byPlace, k)
			}
		}
	}
	b := &budget{limit: s.limit, once: true}
	s.byPlace[p] = b
	return b
}

// try takes n bytes if that needs no waiting.
func (b *budget) try(n int64) bool {
	n = max(n, b.least)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 || !b.fits(n) {
		return false
	}
	b.used += n
	return true
}

func (b *budget) fits(n int64) bool { return b.used == 0 || b.used+n <= b.limit }

// acquire takes n bytes, waiting for them as long as p has patience.
func (b *budget) acquire(n int64, p *patience) bool {
	if b.try(n) {
		return true
	}
	n = max(n, b.least)
	b.mu.Lock()
	if len(b.waiting) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return true
	}
	if b.stuck {
		b.mu.Unlock()
		return false
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()

	select {
	case <-w.ready:
		return true
	case <-p.over():
		p.spent = true
	case <-p.gone:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 { // granted meanwhile
		return true
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	b.grant() // the next may be smaller
	b.stuck = b.once && p.spent
	return false
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	b.mu.Lock()
	b.used -= max(n, b.least)
	b.stuck = false
	b.grant()
	b.mu.Unlock()
}

// grant serves waiters in order while there is room. The caller holds mu.
func (b *budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].n) {
		w := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		b.used += w.n
		close(w.ready)
	}
}

func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func (b *budget) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used == 0 && len(b.waiting) == 0
}

// patience is how long one frame may wait in all, whatever it waits for. The
// clock starts with the first wait. It belongs to one goroutine.
type patience struct {
	limit time.Duration   // 0: no end
	gone  <-chan struct{} // closed when there is nobody left to wait for

	timer   *time.Timer
	started bool
	spent   bool // the timer's one value was taken
}

// longOver is what a patience without end is not, and one that is spent is.
var longOver = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// begin is for a new frame.
func (p *patience) begin() { p.started, p.spent = false, false }

func (p *patience) over() <-chan time.Time {
	switch {
	case p.limit == 0:
		return nil
	case p.spent:
		return longOver
	case p.timer == nil:
		p.timer = time.NewTimer(p.limit)
	case !p.started:
		p.timer.Reset(p.limit)
	}
	p.started = true
	return p.timer.C
}

func (p *patience) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
