package seglog

import (
	"os"
	"path/filepath"
	"slices"
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
