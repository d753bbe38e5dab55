package broker

import (
	"context"
	"log/slog"

	"felix.dev/felix/broker/wal"
)

// openWAL opens the write-ahead log that everything of this broker shares which is to
// be on disk soon: one flush then serves all of it.
func (b *Broker) openWAL(context.Context) error {
	if b.cfg.DataDir == "" {
		return nil
	}
	l, recovery, err := wal.Open(wal.Config{FS: b.cfg.FS, Dir: b.cfg.path(walName), Pressure: b.relieve, Log: b.log})
	if err != nil {
		return err
	}
	b.wal = l
	b.log.Debug("write-ahead log is open", slog.Int("journals", len(recovery.Journals)), slog.Int("groups", len(recovery.Entries)))
	return nil
}

// relieve is told whose records keep the write-ahead log from dropping its oldest file.
func (b *Broker) relieve(keys []string) {
	if m := b.member; m != nil && m.node != nil {
		m.node.Pressure(keys)
	}
}
