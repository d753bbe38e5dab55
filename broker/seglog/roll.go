package seglog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"felix.dev/felix/broker/vfs"
)

// roll begins the next segment; called by the appender. Its steps make sure that a
// segment that has a successor is complete and durable, so that a hole in it found
// later is damage and never the trace of a crash:
//
//  1. flush the old segment
//  2. store the owner's state, flushed
//  3. write the new segment's header to a file under another name, flush
//  4. rename it
//  5. sync the directory
//
// Until step 4 an error leaves the old segment active and nothing changed.
func (l *Log) roll() error {
	old := l.active.Load()
	base := l.next.Load()
	if old != nil {
		if err := l.waitSync(); err != nil {
			return err
		}
		if err := l.writeState(base); err != nil {
			return l.refuse("write owner's state", err)
		}
	}
	w, err := l.createSegment(base)
	if w == nil {
		return err
	}
	l.listMu.Lock()
	segs := *l.segs.Load()
	grown := append(slices.Clip(segs), w.seg)
	l.segs.Store(&grown)
	l.listMu.Unlock()
	l.active.Store(w)
	l.stateFrom.Store(base)
	if old != nil {
		old.seg.following.Store(w.seg)
		l.mu.Lock()
		l.finish = append(l.finish, old)
		l.mu.Unlock()
		wake(l.work)
	}
	return err
}

// refuse is for errors that changed nothing: not even an I/O error makes what is
// already in the log doubtful.
func (l *Log) refuse(op string, err error) error {
	final, typed := classify(op, err)
	if final {
		return l.wrap(op, err)
	}
	return typed
}

// createSegment returns a nil writer with its error if nothing was created.
func (l *Log) createSegment(base uint64) (*writer, error) {
	w := &writer{seg: l.newSegment(base)}
	tmp := ""
	if prep := l.takePrepared(); prep != nil {
		w.file, tmp, w.fill.filled = prep.file, prep.path, prep.size
	} else {
		tmp = filepath.Join(l.cfg.Dir, newSegment)
		f, err := l.fs.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm)
		if err != nil {
			return nil, l.refuse("create segment", err)
		}
		w.file = f
	}
	header := encodeSegmentHeader(segmentHeader{base: base, incarnation: l.cfg.Incarnation, created: l.cfg.Now().UnixMicro()})
	_, err := w.file.WriteAt(header, 0)
	if err == nil {
		err = w.file.Datasync()
	}
	if err == nil {
		err = l.fs.Rename(tmp, w.seg.path)
	}
	if err != nil {
		_ = w.file.Close()
		_ = l.fs.Remove(tmp) // Open removes it too
		return nil, l.refuse("create segment", err)
	}
	if err = l.fs.SyncDir(l.cfg.Dir); err != nil {
		// The new segment is there, and nothing may be written to the old one any
		// more, but its name may not be durable: the next append syncs again.
		l.syncDirs = true
		err = l.fail("sync directory", err)
	}
	w.seg.idx = &index{end: segmentHeaderLen, next: base}
	w.seg.end.Store(segmentHeaderLen)
	w.fill.claim(segmentHeaderLen)
	return w, err
}

func (l *Log) newSegment(base uint64) *segment {
	s := &segment{base: base, path: l.path(base, segmentSuffix), seed: seedOf(l.cfg.Incarnation, base)}
	s.newest.Store(noTime)
	return s
}

// repair is what Open found to be done before the log can be appended to.
type repair struct {
	seg    *segment // the last segment; nil: create the first
	cut    bool     // bytes after the segment's end are to go
	stable uint64   // first offset not known to be on disk
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
	if err != nil {
		return errors.Join(l.refuse("open segment", err), f.Close())
	}
	w := &writer{seg: r.seg, file: f}
	w.fill.claim(r.seg.end.Load())
	w.fill.filled = max(size, w.fill.filled)
	l.durable.Store(l.next.Load())
	l.active.Store(w)
	l.pending = nil
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
