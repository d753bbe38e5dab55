package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Waker is told that a shard has moved. Wake must not block and may be called from
// any goroutine; a lane's group of parked feeders is one. It is comparable.
type Waker interface{ Wake() }

// watchers is who is told of a commit. Reading the list costs one atomic load.
type watchers struct {
	list atomic.Pointer[[]Waker]

	mu    sync.Mutex // guards changes of list, timer and seen
	timer *time.Timer
	seen  uint64
}

func (w *watchers) wake() {
	if l := w.list.Load(); l != nil {
		for _, k := range *l {
			k.Wake()
		}
	}
}

// Watch has w woken at every commit, and at least every poll interval while the
// shard moves: a lost wake-up costs that interval and nothing else.
func (s *Shard) Watch(w Waker) {
	k := &s.watchers
	k.mu.Lock()
	defer k.mu.Unlock()
	k.store(append(slices.Clone(k.load()), w))
	if k.timer == nil {
		k.seen = s.mark.Load()
		k.timer = time.AfterFunc(s.pollDelay(), s.poll)
	}
}

// Unwatch undoes one Watch.
func (s *Shard) Unwatch(w Waker) {
	k := &s.watchers
	k.mu.Lock()
	defer k.mu.Unlock()
	l := slices.Clone(k.load())
	if i := slices.Index(l, w); i >= 0 {
		k.store(slices.Delete(l, i, i+1))
	}
	if len(k.load()) == 0 && k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

func (w *watchers) load() []Waker {
	if l := w.list.Load(); l != nil {
		return *l
	}
	return nil
}

func (w *watchers) store(l []Waker) { w.list.Store(&l) }

// poll is the slow, jittered second chance of every wake-up: one timer a shard,
// none while nobody watches, and no work while the shard does not move.
func (s *Shard) poll() {
	k := &s.watchers
	k.mu.Lock()
	mark := s.mark.Load()
	moved := mark != k.seen
	k.seen = mark
	if k.timer != nil {
		k.timer.Reset(s.pollDelay())
	}
	k.mu.Unlock()
	if moved {
		k.wake()
	}
}

// pollDelay is the poll interval with a quarter of jitter, so that shards opened
// together do not poll together.
func (s *Shard) pollDelay() time.Duration {
	d := s.cfg.PollInterval
	return d - d/8 + time.Duration(s.cfg.Jitter()*float64(d)/4)
}
