package seglog

import (
	"errors"
	"os"

	"felix.dev/felix/broker/vfs"
)

// repair is what Open found to be done before the log can be appended to.
type repair struct {
	seg    *segment // the last segment; nil: create the first
	purge  bool     // of a log that was reset: files are to be removed before that
	cut    bool     // bytes after the segment's end are to go
	stable uint64   // first offset not known to be on disk
	// stale says that the journal holds appends behind a gap. They must not be found
	// any more once their offsets are used again.
	stale bool
	// rewrite is the position from which records are not known to be on disk; they
	// are written again, not just flushed: a flush that failed before may have left
	// them in memory only, marked as clean.
	rewrite int64
}

// repairNow does it. On an error it stays pending and may be tried again, unless
// the log was poisoned.
func (l *Log) repairNow() error {
	r := l.pending
	if r.seg == nil {
		if err := vfs.MkdirAllSync(l.fs, l.cfg.Dir, dirPerm); err != nil {
			return l.refuse("create directory", err)
		}
		if r.purge {
			if err := l.purge(); err != nil {
				return l.refuse("remove segments", err)
			}
			r.purge = false
		}
		err := l.roll()
		if l.active.Load() != nil { // whatever is left to do is not the creation
			l.pending = nil
		}
		return err
	}
	f, err := l.fs.OpenFile(r.seg.path, os.O_RDWR, 0)
	if err != nil {
		return l.refuse("open segment", err)
	}
	if err := l.repairSegment(f, r); err != nil {
		return errors.Join(l.fail("repair segment", err), f.Close())
	}
	size, err := f.Size()
	if err == nil && r.stale {
		err = l.cfg.Journal.Discard()
	}
	if err != nil {
		return errors.Join(l.refuse("open segment", err), f.Close())
	}
	w := &writer{seg: r.seg, file: f}
	w.fill.claim(r.seg.end.Load())
	w.fill.filled = max(size, w.fill.filled)
	l.synced.Store(l.next.Load())
	l.durable.Store(l.next.Load())
	l.active.Store(w)
	l.pending = nil
	l.releaseJournal(l.next.Load())
	return nil
}

func (l *Log) repairSegment(f vfs.File, r *repair) error {
	end := r.seg.end.Load()
	if r.cut {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	if r.rewrite < end {
		buf := make([]byte, min(end-r.rewrite, 1<<20))
		for pos := r.rewrite; pos < end; {
			b := buf[:min(int64(len(buf)), end-pos)]
			if _, err := f.ReadAt(b, pos); err != nil {
				return err
			}
			if _, err := f.WriteAt(b, pos); err != nil {
				return err
			}
			pos += int64(len(b))
		}
	}
	if r.cut || r.rewrite < end {
		return f.Datasync()
	}
	return nil
}
