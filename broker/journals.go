package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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

	mu   sync.Mutex
	open map[string]*seglog.Log // by key
}

func newJournals(w *wal.Log, dataDir string, log *slog.Logger) *journals {
	return &journals{wal: w, dataDir: dataDir, log: log, open: make(map[string]*seglog.Log)}
}

const journalPrefix = "shard/"

func journalKey(e *catalog.Entry, shard int) string {
	return journalPrefix + e.Incarnation + "/" + strconv.Itoa(shard)
}

// of is the journal of a shard.
func (j *journals) of(e *catalog.Entry, shard int) (seglog.Journal, error) {
	return j.wal.Journal(journalKey(e, shard))
}

// opened notes the log of a shard; the function that it returns is for its end.
func (j *journals) opened(e *catalog.Entry, shard int, l *seglog.Log) (closed func()) {
	key := journalKey(e, shard)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open[key] = l
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.open[key] == l {
			delete(j.open, key)
		}
	}
}

// forget gives up what is held of a shard: its records come from elsewhere now.
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
	j.mu.Lock()
	l := j.open[key]
	j.mu.Unlock()
	if l != nil {
		err := l.Checkpoint()
		if err == nil || errors.Is(err, seglog.ErrClosed) || errors.Is(err, seglog.ErrDiskFull) || errors.Is(err, seglog.ErrReadOnly) {
			return err
		}
	}
	// Nobody can have its bytes: the log is damaged, or it could not be opened.
	own, err := j.wal.Journal(key)
	if err != nil {
		return err
	}
	gone, err := j.deleted(key)
	if err != nil {
		return err
	}
	if gone {
		own.Forget()
		return nil
	}
	return own.Carry()
}

// deleted says whether the stream that a key is of has no data any more.
func (j *journals) deleted(key string) (bool, error) {
	incarnation, _, _ := strings.Cut(strings.TrimPrefix(key, journalPrefix), "/")
	dirs, err := filepath.Glob(filepath.Join(j.dataDir, streamsName, "*", "*", "*", incarnation))
	if err != nil {
		return false, fmt.Errorf("broker: data directory: %w", err)
	}
	return len(dirs) == 0, nil
}
