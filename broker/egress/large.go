package egress

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// largeShare is the part of Config.LargeBytes that one connection may have.
const largeShare = 4

// room bounds memory. Whoever asks for more than there is gets all of it, so that no
// frame is too large to ever be sent.
type room struct {
	size int64
	free *semaphore.Weighted
}

func newRoom(size int64) *room {
	size = max(size, 1)
	return &room{size: size, free: semaphore.NewWeighted(size)}
}

func (r *room) take(ctx context.Context, n int) error { return r.free.Acquire(ctx, r.part(n)) }

func (r *room) give(n int) { r.free.Release(r.part(n)) }

func (r *room) part(n int) int64 { return min(int64(n), r.size) }

// takeLarge waits for room for n bytes of memory of the feeder's own: there are
// thousands of readers, and each could hold a frame of 16 MiB that its client does not
// read. It returns without, if there is a reason to look around.
func (f *feeder) takeLarge(n int) {
	ctx, cancel := context.WithCancel(f.w.Context())
	defer cancel()
	f.setWaiting(cancel)
	defer f.setWaiting(nil)
	if f.sub.Removed() { // before it could be woken
		return
	}
	// The connection's first: who waits for it takes no room from others.
	if f.conn.large.take(ctx, n) != nil {
		return
	}
	if f.engine.large.take(ctx, n) != nil {
		f.conn.large.give(n)
		return
	}
	f.granted = n
}

// giveLarge gives back what takeLarge took.
func (f *feeder) giveLarge() {
	if f.granted > 0 {
		f.engine.large.give(f.granted)
		f.conn.large.give(f.granted)
		f.granted = 0
	}
}

func (f *feeder) setWaiting(stop context.CancelFunc) {
	f.group.mu.Lock()
	f.waiting = stop
	f.group.mu.Unlock()
}
