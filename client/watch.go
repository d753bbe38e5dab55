package client

import (
	"context"
	"time"
)

// watch lets a context interrupt the reads of a subscription. It stays in place from one call to the next while they
// come with the same context, so that a reader that waits often does not pay for it each time.
type watch struct {
	// done identifies the context; nil: none is watched.
	done <-chan struct{}
	off  func() bool
	// turn tells an interruption that comes late that it is not wanted any more.
	turn uint64
	// fired says that the deadline of the event stream is in the past.
	fired bool
}

// stop ends the watch. The subscription's lock is held.
func (w *watch) stop() {
	if w.off != nil {
		w.off()
	}
	w.done, w.off = nil, nil
	w.turn++
}

// watchFor makes ctx interrupt the read that follows.
func (s *Subscription) watchFor(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	if ctx.Done() == w.done && !w.fired {
		return
	}
	w.stop()
	if w.fired {
		w.fired = false
		s.setDeadline(time.Time{})
	}
	if ctx.Done() == nil {
		return
	}
	turn := w.turn
	w.done = ctx.Done()
	w.off = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.turn == turn {
			w.fired = true
			s.setDeadline(past)
		}
	})
}

// setDeadline reaches the event stream there is, if any. The lock is held.
func (s *Subscription) setDeadline(t time.Time) {
	if s.attached != nil {
		// It only fails on a stream that is closed already.
		_ = s.attached.stream.SetReadDeadline(t)
	}
}
