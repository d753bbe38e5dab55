package broker

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wire"
)

// opener makes shards of catalog entries.
type opener struct {
	dataDir  string // empty: memory streams only
	defaults stream.Config
	cfg      StreamDefaults
	log      *slog.Logger
	fs       vfs.FS // of the logs
	metrics  *metrics.Metrics
	journals *journals        // of durable logs; nil: without a data directory
	now      func() time.Time // nil: time.Now
	// reserve makes sure that a memory shard's offsets are never used again.
	reserve func(n catalog.Name, shard uint32, upTo uint64) (mark uint64, err error)
}

// opener makes the shards of this broker; reserve is whose catalog it is.
func (b *Broker) opener() *opener {
	return &opener{
		dataDir: b.cfg.DataDir, defaults: b.cfg.shardConfig(), cfg: b.cfg.Streams, log: b.log, fs: b.cfg.FS,
		metrics: b.metrics, journals: b.journals, now: b.cfg.Now,
	}
}

// open opens all shards of a stream; fresh says that it never had any. It does not
// fail: a stream that cannot be opened is refused to clients, with the reason, and
// shown to operators.
func (o *opener) open(e *catalog.Entry, fresh bool) *served {
	s := &served{entry: *e}
	var places []stream.Place
	for i := range int(e.Spec.Shards) {
		k, err := o.openShard(e, i, fresh)
		if err != nil {
			o.log.Error("stream cannot be served", slog.String("stream", e.Spec.Name.String()),
				slog.Int("shard", i), slog.Any("error", err))
			_ = closeShards(context.Background(), s.shards, stream.EndShutdown) // nothing was done with them
			return unavailable(e, unopenedProblem(i, err), &stream.Error{
				Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: "not_ready",
				Message: fmt.Sprintf("shard %d of the stream cannot be opened", i), Err: err,
			})
		}
		places = append(places, k.Shard)
		s.shards = append(s.shards, k)
	}
	s.stream = stream.NewStream(nameOf(e.Spec.Name), e.Incarnation, durabilityOf(e.Spec.Durability), e.Spec.Routing, places)
	return s
}

// openShard opens shard i of a stream; fresh says that it is new. A damaged log is
// opened for reading.
func (o *opener) openShard(e *catalog.Entry, i int, fresh bool) (openShard, error) {
	k := openShard{health: &health{
		log: o.log.With(slog.String("stream", e.Spec.Name.String()), slog.Int("shard", i)), m: o.metrics,
	}}
	cfg := o.shardConfig(e, i, fresh, k.health)
	var openLog func(stream.Hooks) (stream.Log, error)
	if e.Spec.Durability != catalog.Memory {
		if o.dataDir == "" {
			return k, errors.New("broker: a durable stream needs a data directory")
		}
		openLog = func(h stream.Hooks) (stream.Log, error) {
			logCfg, err := o.logConfig(e, i)
			if err != nil {
				return nil, err
			}
			logCfg.Committed = func(next uint64, err error) {
				k.health.committed(next, err)
				h.Committed(next, err)
			}
			logCfg.OnRecover = h.OnRecover
			logCfg.RestoreState, logCfg.SnapshotState = h.RestoreState, h.SnapshotState
			logCfg.Synced, logCfg.Trimmed = k.health.synced, k.health.trimmed
			use, err := o.journals.use(e, i)
			if err != nil {
				return nil, err
			}
			logCfg.Journal = use
			l, recovery, err := seglog.Open(logCfg)
			if err != nil {
				use.end()
				return nil, err
			}
			use.opened(l)
			switch {
			case recovery.Corruption != nil:
				k.health.damage(recovery.Corruption, true)
			case recovery.ReadOnly != nil: // the first publish tries again
				k.health.refusedWrite(recovery.ReadOnly)
			}
			k.segments = l
			return watchedLog{Log: stream.Segments(l), health: k.health, closed: use.end}, nil
		}
	}
	var err error
	if k.Shard, err = stream.Open(cfg, openLog); err != nil {
		return k, err
	}
	k.openedAt = k.Mark()
	return k, nil
}

func (o *opener) shardConfig(e *catalog.Entry, i int, fresh bool, h *health) stream.Config {
	spec := &e.Spec
	cfg := o.defaults
	cfg.Name, cfg.Shard, cfg.Now = nameOf(spec.Name), uint32(i), o.now
	cfg.TailBytes = cmp.Or(spec.TailBytes, cfg.TailBytes)
	cfg.Queue.Entries = cmp.Or(spec.Queue.Entries, cfg.Queue.Entries)
	cfg.Queue.Bytes = cmp.Or(spec.Queue.Bytes, cfg.Queue.Bytes)
	if spec.Queue.OnFull != "" {
		cfg.Queue.OnFull, _ = stream.ParseOnFull(string(spec.Queue.OnFull)) // the catalog has validated it
	}
	if spec.Durability == catalog.Memory {
		cfg.First = e.FirstOffsets[i]
		name := spec.Name
		cfg.Reserve = func(upTo uint64) (uint64, error) {
			mark, err := o.reserve(name, uint32(i), upTo)
			if err != nil {
				h.refusedWrite(err)
			} else {
				h.wrote()
			}
			return mark, err
		}
		if !fresh { // somewhere below what is reserved it was when the broker ended
			cfg.First = e.StartOffsets()[i]
		}
		if spec.TailBytes == 0 && spec.Retention.MaxBytes > 0 { // the ring is all that a memory stream keeps
			cfg.TailBytes = perShard(spec.Retention.MaxBytes, spec.Shards)
		}
		if cfg.Queue.OnFull == stream.CatchUp { // the broker's default; the stream's own was refused
			cfg.Queue.OnFull = stream.DropNew
		}
	}
	return cfg
}

func (o *opener) logConfig(e *catalog.Entry, i int) (seglog.Config, error) {
	spec := &e.Spec
	cfg := seglog.Config{
		FS: o.fs, Dir: shardDir(o.dataDir, e, i), SegmentBytes: o.cfg.SegmentBytes, Prefill: true,
		First: e.FirstOffsets[i], MaxAge: spec.Retention.MaxAge, Now: o.now, Log: o.log,
	}
	if spec.Retention.MaxBytes > 0 {
		cfg.MaxBytes = perShard(spec.Retention.MaxBytes, spec.Shards)
	}
	mode, every := o.cfg.Fsync, time.Duration(o.cfg.FsyncEvery)
	if spec.Fsync.Mode != "" {
		mode, every = string(spec.Fsync.Mode), cmp.Or(spec.Fsync.Every, every)
	}
	if mode == fsyncInterval {
		cfg.Fsync, cfg.FsyncEvery = seglog.FsyncInterval, every
	}
	b, err := hex.DecodeString(e.Incarnation)
	if err != nil || len(b) != len(cfg.Incarnation) {
		return cfg, fmt.Errorf("broker: incarnation %q of stream %s is not 32 hexadecimal digits", e.Incarnation, spec.Name)
	}
	copy(cfg.Incarnation[:], b)
	return cfg, nil
}

// perShard is a shard's part of what is set for a stream.
func perShard(total int64, shards uint32) int64 { return max(1, total/int64(shards)) }
