package seglog

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/vfs"
)

const (
	filePerm = 0o640
	dirPerm  = 0o750
)

// Log is an open log. One goroutine at a time appends; everything else may be
// called from any goroutine at any time.
//
// Locks, in the order in which they may be taken: appendMu, syncMu, trimMu, listMu,
// segment.idxMu, segment.mu, fill.mu, mu (docs/locks.md). Of these listMu and mu are
// never held across disk I/O, and readers take neither appendMu nor trimMu.
type Log struct {
	cfg Config
	fs  vfs.FS
	log *slog.Logger

	// appendMu serialises Append, and Close against it.
	appendMu sync.Mutex
	pending  *repair // what Open could not do, to be done before the next append; nil: nothing
	syncDirs bool    // the directory may hold names that are not durable yet
	badTail  bool    // a failed append left bytes behind the end, to be cut first

	// active is where appends go; nil until the first segment exists and after an
	// Open that could not repair it yet. Only the appender stores it.
	active atomic.Pointer[writer]

	// corrupt is what Open found; appends are refused. Never changes after Open.
	corrupt *CorruptionError

	// segs is every segment, oldest first; replaced as a whole under listMu.
	segs   atomic.Pointer[[]*segment]
	listMu sync.Mutex
	idle   []*segment // closed segments whose files are kept open, oldest use first; guarded by listMu

	next    atomic.Uint64 // first offset not written
	synced  atomic.Uint64 // first offset that the segments are not known to have on disk
	durable atomic.Uint64 // first offset not known to be on disk, here or in the journal; from synced to next
	need    atomic.Uint64 // FsyncAlways: the segment has to be flushed up to here
	oldest  atomic.Uint64 // first offset kept
	// stateFrom is the base of the newest segment with an intact owner's state: it
	// and what follows is needed to rebuild the owner's state.
	stateFrom atomic.Uint64

	// mu guards what follows; it is never held across I/O or a callback.
	mu       sync.Mutex
	flushed  *sync.Cond // doneSync or failure changed
	wantSync uint64     // flushes asked for by number (waitSync)
	doneSync uint64     // flushes done, as of their wantSync
	failure  error      // wraps ErrPoisoned once set; never cleared
	prepared *prepared  // a zero-filled file for the next segment
	finish   []*writer  // closed segments that the keeper has to finish
	held     []span     // what the journal holds behind a gap; rising
	resets   uint64     // how often Reset was called
	closed   bool

	journaled func(from, next uint64, err error) // onJournal
	inJournal atomic.Int64                       // appends that the journal has not answered for
	direct    atomic.Bool                        // the last append was not for the journal

	kick     chan struct{} // wakes the flusher
	work     chan struct{} // wakes the keeper
	stopping chan struct{} // closed by Close, after the last append
	wg       sync.WaitGroup

	preparedCount uint64 // the keeper's, for names
	trimTrouble   string // the keeper's: what it said last of retention

	syncMu    sync.Mutex // one Sync at a time, and none while the log is reset
	trimMu    sync.Mutex // one retention pass at a time
	unlinking *segment   // trimmed, but its file is still there; guarded by trimMu

	syncs     atomic.Uint64
	syncNanos atomic.Int64
	appended  atomic.Int64 // bytes
	appends   atomic.Uint64
	trimmed   atomic.Uint64 // segments
	damaged   atomic.Uint64 // reads that ended in a CorruptionError
}

// Open opens the log in cfg.Dir, creating it if there is none. It repairs what a
// crash may leave behind and says so in Recovery.
//
// A log that can be read but not appended to is not an error: Recovery.ReadOnly
// then says why. That is so when the log is damaged (a *CorruptionError: it stays
// so) and when the disk is full or read-only (the next Append tries again).
func Open(cfg Config) (*Log, Recovery, error) {
	if err := cfg.Validate(); err != nil {
		return nil, Recovery{}, err
	}
	cfg.setDefaults()
	l := &Log{
		cfg:      cfg,
		fs:       cfg.FS,
		log:      cfg.Log,
		kick:     make(chan struct{}, 1),
		work:     make(chan struct{}, 1),
		stopping: make(chan struct{}),
	}
	l.flushed = sync.NewCond(&l.mu)
	l.journaled = l.onJournal
	l.segs.Store(new([]*segment))
	rec, err := l.recover()
	if err != nil {
		for _, s := range *l.segs.Load() {
			s.retire(false)
		}
		return nil, rec, err
	}
	l.wg.Add(2)
	go l.runFlusher(flushState{committed: l.next.Load()})
	go l.runKeeper()
	return l, rec, nil
}

// Next is the first offset that has not been appended.
func (l *Log) Next() uint64 { return l.next.Load() }

// Oldest is the first offset that is kept; equal to Next if the log is empty.
func (l *Log) Oldest() uint64 { return l.oldest.Load() }

// Durable is the first offset that is not known to have been flushed, with its segment
// or in the journal.
func (l *Log) Durable() uint64 { return l.durable.Load() }

// Err is nil while the log can be appended to as far as is known, and otherwise
// the error that Append would return. A full or read-only disk is not remembered.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.corrupt != nil:
		return l.corrupt
	}
	return l.failure
}

// poison records the first failure that leaves the disk's content unknown.
func (l *Log) poison(err error) {
	l.mu.Lock()
	first := l.failure == nil
	if first {
		l.failure = err
		l.flushed.Broadcast()
	}
	l.mu.Unlock()
	if first {
		l.log.Error("log poisoned: no append succeeds until it is reopened", "dir", l.cfg.Dir, "err", err)
	}
	wake(l.kick) // the flusher tells the owner
}

// raise makes a rising value at least v.
func raise(at *atomic.Uint64, v uint64) {
	for {
		old := at.Load()
		if old >= v || at.CompareAndSwap(old, v) {
			return
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close flushes, waits for the log's goroutines and gives up its files. Reads that
// are under way finish; later ones get ErrClosed. It waits for a flush that hangs.
// The error says that what was appended last may not be on disk.
func (l *Log) Close() error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()

	close(l.stopping) // no append is under way, none will begin: the flusher's last flush is complete
	l.wg.Wait()
	l.mu.Lock()
	err, prep := l.failure, l.prepared
	l.prepared = nil
	l.mu.Unlock()
	if prep != nil {
		_ = prep.file.Close()
		_ = l.fs.Remove(prep.path) // zeros; Open removes it too
	}
	if err == nil && l.corrupt == nil && l.pending == nil {
		l.writeMark()
	}
	l.trimMu.Lock() // a pass that is under way may still use segments
	defer l.trimMu.Unlock()
	for _, s := range *l.segs.Load() {
		s.retire(false)
	}
	if w := l.active.Load(); w != nil {
		w.close()
	}
	return err
}

// writeMark notes that the log was closed with everything on disk. Without it the
// next Open can tell a little less, so that an error of it is not one of Close.
func (l *Log) writeMark() {
	next := l.next.Load()
	if l.synced.Load() != next || next == l.cfg.First {
		return
	}
	if readMark(l.fs, l.cfg.Dir, l.cfg.Incarnation) == next {
		return // nothing happened since the last close
	}
	err := vfs.WriteFileAtomic(l.fs, filepath.Join(l.cfg.Dir, markName), appendMark(nil, next, l.cfg.Incarnation), filePerm)
	if err != nil {
		l.log.Warn("no mark of a clean close was written", "dir", l.cfg.Dir, "err", err)
	}
}

// Stats is a snapshot of a log's counters; those that count began at Open.
type Stats struct {
	Oldest, Next, Durable uint64
	Segments              int
	Bytes                 int64 // of records and headers, not of zeros ahead of use
	Appends               uint64
	AppendedBytes         int64
	Syncs                 uint64 // flushes of segments for appends
	SyncTime              time.Duration
	TrimmedSegments       uint64
	DamagedReads          uint64
	Err                   error // as Log.Err
}

// Stats returns a snapshot; its values may be from slightly different moments.
func (l *Log) Stats() Stats {
	segs := *l.segs.Load()
	st := Stats{
		Oldest: l.Oldest(), Next: l.Next(), Durable: l.Durable(),
		Segments:        len(segs),
		Appends:         l.appends.Load(),
		AppendedBytes:   l.appended.Load(),
		Syncs:           l.syncs.Load(),
		SyncTime:        time.Duration(l.syncNanos.Load()),
		TrimmedSegments: l.trimmed.Load(),
		DamagedReads:    l.damaged.Load(),
		Err:             l.Err(),
	}
	for _, s := range segs {
		st.Bytes += s.end.Load()
	}
	return st
}

func (l *Log) wrap(op string, err error) error {
	return fmt.Errorf("seglog: %s in %s: %w", op, l.cfg.Dir, err)
}
