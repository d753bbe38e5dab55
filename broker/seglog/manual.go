package seglog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// errNotManual is a caller's mistake.
var errNotManual = errors.New("seglog: only a log in FsyncManual mode is told what to remove")

// Sync flushes what was appended before it was called, and returns when that is
// done. Appends and retention go on meanwhile.
func (l *Log) Sync() error {
	if err := l.Err(); err != nil {
		return err
	}
	if l.active.Load() == nil {
		if err := l.repairFirst(); err != nil {
			return err
		}
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if l.active.Load() == nil || l.synced.Load() == l.next.Load() {
		return nil
	}
	return l.waitSync()
}

// repairFirst does what Open or Reset had to put off.
func (l *Log) repairFirst() error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := l.Err(); err != nil || l.pending == nil {
		return err
	}
	return l.repairNow()
}

// Checkpoint flushes the segment, so that the journal holds nothing of the log.
func (l *Log) Checkpoint() error {
	if err := l.Sync(); err != nil {
		return err
	}
	l.releaseJournal(l.synced.Load())
	return nil
}

// TrimTo says that nothing below offset is needed any more: Oldest is at least that at
// once, and segments that lie below it and were flushed are removed, but for what is
// needed to rebuild the owner's state. It is for logs in FsyncManual mode. After Open
// Oldest is where the oldest segment begins: call it again.
func (l *Log) TrimTo(offset uint64) (removed int, err error) {
	if l.cfg.Fsync != FsyncManual {
		return 0, errNotManual
	}
	l.trimMu.Lock()
	defer l.trimMu.Unlock()
	if err := l.Err(); err != nil && !errors.Is(err, ErrPoisoned) {
		return 0, err
	}
	raise(&l.oldest, min(offset, l.next.Load()))
	return l.removeOldest(func(_ *segment, following uint64) (bool, error) { return following <= offset, nil })
}

// Reset removes every record and goes on at base, for a log in FsyncManual mode. The
// owner's state is forgotten too. After an error that is not final the log is empty as
// far as this process is concerned, and the next append or Reset tries again. A crash
// in the middle leaves some of the earliest records, or an empty log at Config.First: its
// owner sees that the end is missing. Reset is to be called again.
func (l *Log) Reset(base uint64) error {
	if l.cfg.Fsync != FsyncManual {
		return errNotManual
	}
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.syncMu.Lock() // no Sync is under way, nor a pass of retention
	defer l.syncMu.Unlock()
	l.trimMu.Lock()
	defer l.trimMu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if w := l.active.Load(); w != nil {
		// So that no flush of the old segments comes after this. What it flushes is going
		// away, but a failure means that flushes can't be trusted.
		if err := l.waitSync(); err != nil {
			return err
		}
		l.active.Store(nil)
		w.close()
	}
	l.forgetSegments(base)
	return l.repairNow()
}

// forgetSegments empties the log in memory; the files go with the repair.
func (l *Log) forgetSegments(base uint64) {
	l.listMu.Lock()
	old := *l.segs.Load()
	l.segs.Store(new([]*segment))
	l.idle = nil
	l.next.Store(base)
	l.oldest.Store(base)
	l.stateFrom.Store(base)
	l.listMu.Unlock()
	for _, s := range old {
		s.retire(true)
	}
	l.mu.Lock()
	l.synced.Store(base)
	l.durable.Store(base)
	l.need.Store(0)
	l.held = nil
	l.resets++
	closed := l.finish
	l.finish = nil
	l.mu.Unlock()
	for _, w := range closed {
		w.close()
	}
	l.unlinking, l.badTail = nil, false
	l.pending = &repair{purge: true}
}

// purge removes the files of a log that was reset: first what vouches for segments,
// then these, latest first, each for good before the next: what a crash leaves must not
// end where the whole log did.
func (l *Log) purge() error {
	ls, err := list(l.fs, l.cfg.Dir)
	if err != nil {
		return err
	}
	var names []string
	if ls.mark {
		names = append(names, markName)
	}
	for _, base := range ls.indexes {
		names = append(names, filepath.Base(l.path(base, indexSuffix)))
	}
	for _, base := range ls.states {
		names = append(names, filepath.Base(l.path(base, stateSuffix)))
	}
	for _, name := range names {
		if err := l.removeFile(name); err != nil {
			return err
		}
	}
	if err := l.fs.SyncDir(l.cfg.Dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	for _, base := range slices.Backward(ls.segments) {
		if err := l.removeFile(segmentName(base)); err != nil {
			return err
		}
		if err := l.fs.SyncDir(l.cfg.Dir); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	return nil
}

func (l *Log) removeFile(name string) error {
	if err := l.fs.Remove(filepath.Join(l.cfg.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
