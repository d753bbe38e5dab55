package broker

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"felix.dev/felix/broker/replica"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// openLog opens the log of a replicated shard. What is in it was agreed on before it
// was written: it is synced when its group says so, and retention is the group's.
func (g *groups) openLog(o replica.Opening) (replica.Log, error) {
	e, err := entryOf(o)
	if err != nil {
		return nil, err
	}
	i := int(o.Key.Shard)
	cfg, err := g.opener.logConfig(e, i)
	if err != nil {
		return nil, err
	}
	cfg.Fsync, cfg.FsyncEvery, cfg.MaxBytes, cfg.MaxAge = seglog.FsyncManual, 0, 0, 0
	h := &health{
		log: g.log.With(slog.String("stream", e.Spec.Name.String()), slog.Int("shard", i)), m: g.opener.metrics,
	}
	cfg.Synced, cfg.Trimmed = h.synced, h.trimmed
	l, recovery, err := seglog.Open(cfg)
	if err != nil {
		return nil, err
	}
	switch {
	case recovery.Corruption != nil: // until it is rebuilt from the others
		h.damage(recovery.Corruption, true)
	case recovery.ReadOnly != nil:
		h.refusedWrite(recovery.ReadOnly)
	}
	g.health.Store(route.Key(o.Key), &replicaHealth{health: h, openedAt: l.Next(), dir: cfg.Dir})
	return replicaLog{watchedLog{Log: stream.Segments(l), health: h}, l}, nil
}

// replicaLog is a shard's log as its group needs it, under watch.
type replicaLog struct {
	watchedLog

	segments *seglog.Log
}

// Sync implements replica.Log.
func (l replicaLog) Sync() error { return l.segments.Sync() }

// TrimTo implements replica.Log.
func (l replicaLog) TrimTo(offset uint64) (removed int, err error) { return l.segments.TrimTo(offset) }

// Reset implements replica.Log.
func (l replicaLog) Reset(base uint64) error {
	if err := l.segments.Reset(base); err != nil {
		return err
	}
	l.health.repaired()
	return nil
}

// removeLog removes the data of a replicated shard. One that is not open is looked for
// in the folders of all streams.
func (g *groups) removeLog(key replica.ShardKey) error {
	var dirs []string
	if h, ok := g.health.LoadAndDelete(route.Key(key)); ok {
		if h, ok := h.(*replicaHealth); ok {
			dirs = []string{h.dir}
		}
	}
	if dirs == nil {
		var err error
		shard := strconv.FormatUint(uint64(key.Shard), 10)
		if dirs, err = foldersOf(g.opener.dataDir, filepath.Join(key.Incarnation, shard)); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := seglog.Remove(g.opener.fs, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = g.opener.fs.Remove(filepath.Dir(dir)) // unless other shards are in it
	}
	return nil
}

// TrimPoint implements replica.Log.
func (l replicaLog) TrimPoint(maxBytes int64, maxAge time.Duration) (uint64, error) {
	return l.segments.TrimPoint(maxBytes, maxAge)
}

// Records implements replica.Log.
func (l replicaLog) Records(from uint64, maxBytes int, buf []byte) ([]seglog.Record, []byte, error) {
	return l.segments.Records(from, maxBytes, buf)
}

// Err implements replica.Log.
func (l replicaLog) Err() error { return l.segments.Err() }
