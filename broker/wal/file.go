package wal

import (
	"math"
	"sync/atomic"

	"felix.dev/felix/broker/vfs"
)

// file is one file of the log. The last one is written to, by the committer alone.
type file struct {
	number uint64
	path   string
	f      vfs.File // for reading
	w      vfs.File // for writing, may be the same; nil of those that are not written to, and the committer's
	seed   uint32
	first  uint64 // number of its first batch

	end    atomic.Int64 // position after the last batch that was flushed
	filled int64        // size: what lies beyond end costs no growth; the committer's

	// pins says up to where each owner has something here; guarded by Log.mu.
	pins    map[owner]uint64
	renamed bool // it has lost its name, perhaps not durably yet; the keeper's
}

func (f *file) close() {
	_ = f.f.Close() // what matters was flushed before, or the log is poisoned
	if f.w != nil {
		_ = f.w.Close() // again, if it is the same
	}
}

// pinLocked notes that an owner has something here, up to a bound.
func (f *file) pinLocked(o owner, upTo uint64) { f.pins[o] = max(f.pins[o], upTo) }

// neededLocked says whether anybody needs something here.
func (f *file) neededLocked() bool {
	for o, upTo := range f.pins {
		if o.pins(upTo) {
			return true
		}
		delete(f.pins, o) // never again: bounds only rise
	}
	return false
}

// lowerPinsLocked notes that an owner's entries from index on are gone.
func (l *Log) lowerPinsLocked(o owner, index uint64) {
	for _, f := range l.files {
		if upTo, ok := f.pins[o]; ok && upTo >= index {
			f.pins[o] = index - 1
		}
	}
}

// The zeros that are written ahead of a growing file: a flush that finds the size
// unchanged is cheaper than one that has to make it durable.
const (
	fillAfter = 64 << 10 // a file that holds less is not filled ahead: most logs are small
	fillMin   = 128 << 10
	fillMax   = 1 << 20
)

var zeros [64 << 10]byte // never written to

// fillAhead extends the file's zeros if what is written now, up to end, makes it
// grow. That they can't be written is no reason to fail.
func (f *file) fillAhead(end, limit int64) error {
	if end <= f.filled {
		return nil
	}
	f.filled = end
	if end < fillAfter {
		return nil
	}
	to := min(end+min(max(end/4, fillMin), fillMax), max(limit, end), math.MaxUint32)
	for f.filled < to {
		n, err := f.w.WriteAt(zeros[:min(int64(len(zeros)), to-f.filled)], f.filled)
		if err != nil {
			return err
		}
		f.filled += int64(n)
	}
	return nil
}
