package seglog

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/vfs"
)

var zeroBlock [4096]byte // never written to

func isZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeroBlock))
		if !bytes.Equal(b[:n], zeroBlock[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// segment is one file of a log, as readers see it. The newest is the active one:
// a writer has it open with a handle of its own, readers read up to end.
type segment struct {
	base    uint64
	path    string
	seed    uint32
	damaged *CorruptionError // header that Open could not read; never changes after that

	// end is the position after the last whole record. Of a segment that was closed
	// before this process began it is the file's size: zeros may come before it.
	// The appender stores it after the bytes are written.
	end atomic.Int64
	// following is set once, when the segment is closed: it then holds exactly the
	// offsets below following.base, all flushed.
	following atomic.Pointer[segment]
	// newest is the largest time of a record, microseconds, once the segment is
	// closed and its index was seen; noTime before.
	newest atomic.Int64

	mu      sync.Mutex // guards what follows; may be held while the file is opened
	file    vfs.File   // readers' handle; nil while nobody reads
	refs    int        // reads under way
	removed bool       // retention took it; its file is closed with the last reference
	closed  bool       // the log was closed; likewise

	// idxMu guards idx, and of the active segment's index the entries; the appender
	// alone uses its other fields. It may be held while a closed segment's index is
	// read or rebuilt.
	idxMu sync.Mutex
	idx   *index // nil: not loaded; always there for the active segment
}

const noTime = math.MinInt64

// writer is the appender's and flusher's side of the active segment. Its handle is
// flushed by the flusher alone: the kernel reports a failed write-back once per
// handle, and it is the flusher who must hear of it.
type writer struct {
	seg  *segment
	file vfs.File
	fill fill

	flushMu sync.Mutex // a flush is under way, or the file is being closed
	closed  bool       // guarded by flushMu
}

// flush is nil for one that was closed: that was flushed as a whole before.
func (w *writer) flush() error {
	w.flushMu.Lock()
	defer w.flushMu.Unlock()
	if w.closed {
		return nil
	}
	return w.file.Datasync()
}

func (w *writer) close() {
	w.flushMu.Lock()
	defer w.flushMu.Unlock()
	w.closed = true
	_ = w.file.Close() // flushed, or poisoned
}

// acquire returns the readers' handle, which stays open until release; ok is false
// if retention has removed the segment, the error ErrClosed after Close.
func (s *segment) acquire(fsys vfs.FS) (f vfs.File, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, false, ErrClosed
	case s.removed:
		return nil, false, nil
	}
	if s.file == nil {
		f, err := fsys.OpenFile(s.path, os.O_RDONLY, 0)
		if err != nil {
			return nil, false, fmt.Errorf("seglog: open %s: %w", s.path, err)
		}
		s.file = f
	}
	s.refs++
	return s.file, true, nil
}

// release gives up a reference. It returns true when nobody holds one, so that
// the caller may put the open file among the idle ones.
func (s *segment) release() (idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs--
	if s.refs > 0 || s.file == nil {
		return false
	}
	if s.removed || s.closed {
		s.closeFileLocked()
		return false
	}
	return true
}

// drop closes the file of a segment that nobody is using.
func (s *segment) drop() {
	s.mu.Lock()
	if s.refs == 0 {
		s.closeFileLocked()
	}
	s.mu.Unlock()
	s.idxMu.Lock()
	if s.newest.Load() != noTime { // closed, and the keeper has written its index
		s.idx = nil
	}
	s.idxMu.Unlock()
}

// retire closes the file once the last reader has let go.
func (s *segment) retire(removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if removed {
		s.removed = true
	} else {
		s.closed = true
	}
	if s.refs == 0 {
		s.closeFileLocked()
	}
}

func (s *segment) isRemoved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed
}

func (s *segment) closeFileLocked() {
	if s.file == nil {
		return
	}
	_ = s.file.Close() // everything that matters was flushed before, or is being given up
	s.file = nil
}
