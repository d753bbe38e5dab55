package quorum

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/wal"
)

// watched is what a group waits for on this server.
type watched int

const (
	watchLog watched = iota
	watchState
	watchMachine
	watches // their number
)

func (w watched) String() string {
	return [watches]string{"log store", "state store", "machine"}[w]
}

// probeAfter is how long after a refused write a group stands for election again: the
// disk may have room by then, and nobody else may be there.
const probeAfter = 5 * time.Second

// watch knows whether this server's part of a group is stuck: something does not come
// back, or fails. Such a group is muted, so that another server can lead.
type watch struct {
	g     *Group
	since [watches]atomic.Int64 // when what is under way began, in nanoseconds; 0: nothing is

	mu      sync.Mutex
	hung    [watches]*StuckError
	failing [watches]*StuckError
	failed  [watches]time.Time // when it last did
	now     atomic.Pointer[StuckError]
}

// begin says that something was asked for; the returned function, that it came back.
func (w *watch) begin(what watched) func(error) {
	began := time.Now()
	w.since[what].Store(began.UnixNano())
	return func(err error) {
		w.since[what].Store(0)
		if err == nil && w.now.Load() == nil || errors.Is(err, ErrClosed) {
			return
		}
		w.mu.Lock()
		w.hung[what] = nil
		if err == nil {
			w.failing[what] = nil
		} else {
			w.failed[what] = time.Now()
			if f := w.failing[what]; f == nil {
				w.failing[what] = &StuckError{Group: w.g.id, What: what.String(), Since: began, Err: err}
			} else {
				w.failing[what] = &StuckError{Group: w.g.id, What: what.String(), Since: f.Since, Err: err}
			}
		}
		w.settle()
	}
}

// check looks for what does not come back.
func (w *watch) check(now time.Time) {
	for what := range watches {
		since := w.since[what].Load()
		if since == 0 || now.Sub(time.Unix(0, since)) < w.g.n.cfg.AppendTimeout {
			continue
		}
		w.mu.Lock()
		if w.hung[what] != nil || w.since[what].Load() != since {
			w.mu.Unlock()
			continue
		}
		w.hung[what] = &StuckError{Group: w.g.id, What: what.String(), Since: time.Unix(0, since)}
		w.settle()
	}
}

// settle says what is so now, and unlocks w.mu.
func (w *watch) settle() {
	var now *StuckError
	for what := range watches {
		for _, e := range []*StuckError{w.hung[what], w.failing[what]} {
			if now == nil {
				now = e
			}
		}
	}
	before := w.now.Swap(now)
	w.mu.Unlock()
	if (before == nil) != (now == nil) {
		w.g.stuckChanged(now)
	}
}

// stuck is what the group waits for, nil if it is well.
func (w *watch) stuck() *StuckError { return w.now.Load() }

// muted tells whether others must not hear of this server.
func (w *watch) muted() bool {
	now := w.now.Load()
	if now == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for what := range watches {
		if w.hung[what] != nil {
			return true
		}
		if f := w.failing[what]; f != nil && (time.Since(w.failed[what]) < probeAfter || errors.Is(f.Err, wal.ErrPoisoned)) {
			return true
		}
	}
	return false
}
