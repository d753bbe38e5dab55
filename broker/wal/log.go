package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/vfs"
)

// Log is an open write-ahead log. Everything may be called from any goroutine.
//
// Locks, in the order in which they may be taken: Entries.writing, Log.mu, Entries.mu.
// Neither mu is held across disk I/O or a callback.
type Log struct {
	cfg   Config
	fs    vfs.FS
	log   *slog.Logger
	start time.Time

	mu       sync.Mutex // guards what follows
	room     *sync.Cond // there may be room in pending
	journals map[string]*Journal
	stores   map[string]*Entries
	lastID   uint32
	files    []*file // oldest first; the last is where the committer writes
	spares   []spare
	crowd    int    // how many wait for room
	pending  *batch // what the next commit writes
	unused   *batch // the buffer that is not pending and not being written
	planned  int64  // where pending begins in the file that it will be written to
	epoch    uint64 // ids that were declared in an earlier one must be declared again
	failure  error  // wraps ErrPoisoned once set; never cleared
	closing  bool

	// active is the last of files, nil until there is one; the committer's, after Open.
	active   *file
	id       [16]byte
	number   uint64  // of the next batch; the committer's
	lastFile uint64  // number of the newest file; the committer's
	todo     *repair // what Open could not do; the committer's; nil: nothing
	syncDir  bool    // names may not be durable yet; the committer's

	lastUser   atomic.Pointer[stream] // who appended last
	lastSwitch atomic.Int64           // when it was another than the one before, since start; 0: never

	kick     chan struct{} // wakes the committer
	work     chan struct{} // wakes the keeper
	press    chan struct{} // wakes the one who asks for relief
	stopping chan struct{}
	stopped  chan struct{} // the committer has ended
	wg       sync.WaitGroup
	closed   sync.Once
	closeErr error

	spareCount   uint64 // the keeper's, for names
	dropTrouble  string // the keeper's: what it said last
	commits      atomic.Uint64
	syncs        atomic.Uint64
	syncNanos    atomic.Int64
	appends      atomic.Uint64
	appended     atomic.Int64
	droppedFiles atomic.Uint64
}

// Open opens the log in cfg.Dir, creating it if there is none. Damage in it is a
// *CorruptionError: the log is not opened, and nothing is changed.
//
// A disk that is full or read-only is not an error: Recovery.ReadOnly then says so,
// and the next append tries again.
func Open(cfg Config) (*Log, Recovery, error) {
	if err := cfg.Validate(); err != nil {
		return nil, Recovery{}, err
	}
	cfg.setDefaults()
	l := &Log{
		cfg: cfg, fs: cfg.FS, log: cfg.Log, start: time.Now(),
		journals: make(map[string]*Journal), stores: make(map[string]*Entries),
		pending: newBatch(), unused: newBatch(), epoch: 1,
		kick: make(chan struct{}, 1), work: make(chan struct{}, 1), press: make(chan struct{}, 1),
		stopping: make(chan struct{}), stopped: make(chan struct{}),
	}
	l.room = sync.NewCond(&l.mu)
	rec, err := l.recover()
	if err != nil {
		l.closeFiles()
		return nil, rec, err
	}
	l.wg.Add(3)
	go l.runCommitter()
	go l.runKeeper()
	go l.runPressure()
	wake(l.work)
	return l, rec, nil
}

// Close writes what waits, flushes, waits for the log's goroutines and gives up the
// files. Its users must have ended: who still appends gets ErrClosed. It waits for a
// flush that hangs.
func (l *Log) Close() error {
	l.closed.Do(func() {
		l.mu.Lock()
		l.closing = true
		l.room.Broadcast()
		l.mu.Unlock()
		close(l.stopping)
		l.wg.Wait()
		l.closeFiles()
		l.mu.Lock()
		l.closeErr = l.failure
		l.mu.Unlock()
	})
	return l.closeErr
}

func (l *Log) closeFiles() {
	for _, f := range l.files {
		f.close()
	}
}

// Err is nil while the log can be appended to as far as is known, and otherwise the
// error that an append gets. A full or read-only disk is not remembered.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errLocked()
}

func (l *Log) errLocked() error {
	if l.closing {
		return ErrClosed
	}
	return l.failure
}

// Stats is a snapshot of a log's counters; those that count began at Open.
type Stats struct {
	Files         int
	Bytes         int64  // of the files, as far as they are written
	Commits       uint64 // batches written and flushed
	Syncs         uint64 // flushes, also those of new files
	SyncTime      time.Duration
	Appends       uint64 // journal appends and entries
	AppendedBytes int64
	Dropped       uint64   // files that nobody needed any more
	Pinned        []string // the keys that keep the oldest file; none while it is the only one
	Err           error    // as Log.Err
}

// Stats returns a snapshot; its values may be from slightly different moments.
func (l *Log) Stats() Stats {
	st := Stats{
		Commits: l.commits.Load(), Syncs: l.syncs.Load(), SyncTime: time.Duration(l.syncNanos.Load()),
		Appends: l.appends.Load(), AppendedBytes: l.appended.Load(), Dropped: l.droppedFiles.Load(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	st.Files, st.Bytes, st.Err = len(l.files), l.bytesLocked(), l.errLocked()
	if len(l.files) > 1 {
		st.Pinned = l.pinnersLocked(l.files[0])
	}
	return st
}

func (l *Log) bytesLocked() (total int64) {
	for _, f := range l.files {
		total += f.end.Load()
	}
	return total
}

// pinnersLocked are the keys that need something in a file.
func (l *Log) pinnersLocked(f *file) (keys []string) {
	for o, upTo := range f.pins {
		if o.pins(upTo) {
			keys = append(keys, o.common().key)
		}
	}
	slices.Sort(keys)
	return keys
}

// poison records the first failure that leaves the disk's content unknown.
func (l *Log) poison(err error) {
	l.mu.Lock()
	first := l.failure == nil
	if first {
		l.failure = err
		l.room.Broadcast()
	}
	l.mu.Unlock()
	if first {
		l.log.Error("write-ahead log poisoned: nothing is appended until it is reopened", "dir", l.cfg.Dir, "err", err)
	}
}

// fail classifies an error of a step whose failure leaves unknown what is durable.
func (l *Log) fail(op string, err error) error {
	final, err := classify(op+" "+l.cfg.Dir, err)
	if final {
		l.poison(err)
	}
	return err
}

// refuse is for errors that changed nothing: not even an I/O error makes what is
// already in the log doubtful.
func (l *Log) refuse(op string, err error) error {
	if final, typed := classify(op, err); !final {
		return typed
	}
	return l.wrap(op, err)
}

func (l *Log) wrap(op string, err error) error {
	return fmt.Errorf("wal: %s in %s: %w", op, l.cfg.Dir, err)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// retryable says that the same may succeed later.
func retryable(err error) bool { return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrReadOnly) }
