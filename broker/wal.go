package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"felix.dev/felix/broker/wal"
)

// openWAL opens the write-ahead log that everything of this broker shares which is to
// be on disk soon: one flush then serves all of it.
func (b *Broker) openWAL(context.Context) error {
	if b.cfg.DataDir == "" {
		return nil
	}
	l, recovery, err := wal.Open(wal.Config{FS: b.cfg.FS, Dir: b.cfg.path(walName), Pressure: b.relieve, Synced: b.walSynced, Log: b.log})
	if err != nil {
		if _, damaged := errors.AsType[*wal.CorruptionError](err); damaged {
			err = fmt.Errorf("%w; it may alone hold what was acknowledged last: with the directory %s moved away the broker starts without that", err, b.cfg.path(walName))
		}
		return fmt.Errorf("broker: %w", err)
	}
	b.wal, b.journals = l, newJournals(l, b.cfg.DataDir, b.log)
	b.log.Debug("write-ahead log is open", slog.Int("journals", len(recovery.Journals)), slog.Int("groups", len(recovery.Entries)))
	return nil
}

func (b *Broker) walSynced(took time.Duration, _ error) {
	b.metrics.Log.WALSync.Observe(took.Seconds())
}

// relieve is told whose records keep the write-ahead log from dropping its oldest file.
func (b *Broker) relieve(keys []string) {
	if !b.serving.Load() { // what is asked may not be there yet, or any more; it is asked again
		return
	}
	b.journals.relieve(keys)
	if m := b.member; m != nil && m.node != nil {
		m.node.Pressure(keys)
	}
}
