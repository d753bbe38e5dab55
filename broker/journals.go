package broker

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wal"
)

// checkpointsAtOnce is how many logs are flushed at a time to make room in the
// write-ahead log: their flushes compete with those of publishes.
const checkpointsAtOnce = 2

// journals are the parts of the write-ahead log that belong to shards with one owner:
// what such a shard acknowledged is there until its own log has it on disk.
type journals struct {
	wal     *wal.Log
	dataDir string
	log     *slog.Logger

	// carrying is held while bytes of a journal that no log uses are moved or dropped,
	// and while a log begins to use one.
	carrying sync.Mutex

	mu   sync.Mutex
	uses map[string]*journalUse // by key; guarded by mu
}

// journalUse is a shard's journal for as long as its log is open.
type journalUse struct {
	*wal.Journal

	of  *journals
	key string
	log *seglog.Log // nil while it is being opened; guarded by journals.mu
}

func newJournals(w *wal.Log, dataDir string, log *slog.Logger) *journals {
	return &journals{wal: w, dataDir: dataDir, log: log, uses: make(map[string]*journalUse)}
}

const journalPrefix = "shard/"

func journalKey(e *catalog.Entry, shard int) string {
	return journalPrefix + e.Incarnation + "/" + strconv.Itoa(shard)
}

// use gives the journal of a shard to its log, until end.
func (j *journals) use(e *catalog.Entry, shard int) (*journalUse, error) {
	u := &journalUse{of: j, key: journalKey(e, shard)}
	j.carrying.Lock()
	defer j.carrying.Unlock()
	var err error
	if u.Journal, err = j.wal.Journal(u.key); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.uses[u.key] = u
	return u, nil
}

// opened says that the log is open, and can be asked to let go of the journal.
func (u *journalUse) opened(l *seglog.Log) {
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	u.log = l
}

// end says that the log is closed, or was not opened.
func (u *journalUse) end() {
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	if u.of.uses[u.key] == u {
		delete(u.of.uses, u.key)
	}
}

// user is the log that uses a journal, if any does; busy says that one is being opened.
func (j *journals) user(key string) (l *seglog.Log, busy bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	u := j.uses[key]
	if u == nil {
		return nil, false
	}
	return u.log, u.log == nil
}

// forget gives up what is held of a shard that is not open: its records come from
// elsewhere now.
func (j *journals) forget(e *catalog.Entry, shard int) error {
	own, err := j.wal.Journal(journalKey(e, shard))
	if err == nil {
		own.Forget()
	}
	return err
}

// relieve has logs flushed that keep the write-ahead log from dropping a file.
func (j *journals) relieve(keys []string) {
	var g errgroup.Group
	g.SetLimit(checkpointsAtOnce)
	for _, key := range keys {
		if !strings.HasPrefix(key, journalPrefix) {
			continue
		}
		g.Go(func() error {
			if err := j.relieveOne(key); err != nil && !errors.Is(err, seglog.ErrClosed) && !errors.Is(err, wal.ErrClosed) {
				j.log.Warn("the write-ahead log keeps a file for a shard", slog.String("journal", key), slog.Any("error", err))
			}
			return nil
		})
	}
	_ = g.Wait() // none fails
}

func (j *journals) relieveOne(key string) error {
	l, _ := j.user(key)
	if l != nil {
		err := l.Checkpoint()
		if err == nil || errors.Is(err, seglog.ErrClosed) || errors.Is(err, seglog.ErrDiskFull) || errors.Is(err, seglog.ErrReadOnly) {
			return err
		}
	}
	// Nobody takes its bytes: the log is damaged, or it was not opened.
	j.carrying.Lock()
	defer j.carrying.Unlock()
	if now, busy := j.user(key); busy || now != l {
		return nil // another one will
	}
	own, err := j.wal.Journal(key)
	if err != nil {
		return err
	}
	if l == nil {
		gone, err := j.deleted(key)
		if err != nil {
			return err
		}
		if gone {
			own.Forget()
			return nil
		}
	}
	return own.Carry()
}

// deleted says whether the stream that a key is of has no data any more.
func (j *journals) deleted(key string) (bool, error) {
	incarnation, _, _ := strings.Cut(strings.TrimPrefix(key, journalPrefix), "/")
	dirs, err := foldersOf(j.dataDir, incarnation)
	return err == nil && len(dirs) == 0, err
}
