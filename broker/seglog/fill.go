package seglog

import (
	"sync"

	"felix.dev/felix/broker/vfs"
)

// fill keeps the appender and the zero-filler of a segment apart: the filler only
// writes beyond everything that the appender has claimed, and the appender waits
// for a chunk under way if it has caught up with it (a write of at most
// prefillSizes.chunk, never a flush).
type fill struct {
	mu      sync.Mutex
	done    *sync.Cond // on mu; nil until the filler first runs
	claimed int64      // appender's: everything below is, or is about to be, its bytes
	filled  int64      // size of the file: below are zeros or records
	busy    bool       // the filler is writing [busyAt, ...)
	busyAt  int64
}

// claim reserves the bytes below end for the appender.
func (z *fill) claim(end int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for z.busy && end > z.busyAt {
		z.done.Wait()
	}
	z.claimed = end
	z.filled = max(z.filled, end)
}

// truncate cuts the file at pos, for the appender.
func (z *fill) truncate(f vfs.File, pos int64) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	for z.busy {
		z.done.Wait()
	}
	if err := f.Truncate(pos); err != nil {
		return err
	}
	z.claimed, z.filled = pos, pos
	return nil
}

// begin picks the next chunk for the filler to write.
func (z *fill) begin(limit, chunk int64) (from, to int64, ok bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.done == nil {
		z.done = sync.NewCond(&z.mu)
	}
	from = max(z.filled, z.claimed)
	to = min(from+chunk, limit)
	if to <= from {
		return 0, 0, false
	}
	z.busy, z.busyAt = true, from
	return from, to, true
}

// finish ends what begin began; to is 0 if the chunk was not written.
func (z *fill) finish(to int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.busy = false
	z.filled = max(z.filled, to)
	z.done.Broadcast()
}

// ahead is how much of the file lies beyond what the appender has used.
func (z *fill) ahead() int64 {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.filled - z.claimed
}
