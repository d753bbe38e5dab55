package seglog

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Trim applies the retention of Config: it removes whole segments, oldest first,
// never the active one, never anything that isn't durable, and never what is needed
// to rebuild the owner's state. The log does so by
// itself when a segment is closed and, with MaxAge, from time to time. Readers that
// are inside a segment finish their read. After an error the rest is tried again by
// the next call.
func (l *Log) Trim() (removed int, err error) {
	l.trimMu.Lock()
	defer l.trimMu.Unlock()
	if err := l.Err(); err != nil && !errors.Is(err, ErrPoisoned) {
		return 0, err // closed, or damaged: then everything stays as it is
	}
	total := int64(0)
	for _, s := range *l.segs.Load() {
		total += s.end.Load()
	}
	return l.removeOldest(func(s *segment, _ uint64) (bool, error) {
		expired, err := l.expired(s, total)
		if expired {
			total -= s.end.Load()
		}
		return expired, err
	})
}

// removeOldest removes segments from the oldest on for as long as they may go and are
// expired, which is asked with the offset that the next one begins at. The caller
// holds trimMu.
func (l *Log) removeOldest(expired func(s *segment, following uint64) (bool, error)) (removed int, err error) {
	for {
		// One that was taken out of the list before but could not be removed comes
		// first: a gap between files would be damage to the next Open.
		if err := l.unlinkTrimmed(); err != nil {
			return removed, err
		}
		s := (*l.segs.Load())
		if len(s) < 2 || s[1].base > min(l.synced.Load(), l.stateFrom.Load()) {
			return removed, nil
		}
		oldest := s[0]
		if gone, err := expired(oldest, s[1].base); err != nil || !gone {
			return removed, err
		}
		l.takeOldest()
		oldest.retire(true)
		l.unlinking = oldest
		l.trimmed.Add(1)
		if l.cfg.Trimmed != nil {
			l.cfg.Trimmed(1)
		}
		removed++
		l.log.Debug("segment removed by retention", "segment", oldest.path)
	}
}

func (l *Log) expired(s *segment, total int64) (bool, error) {
	if l.cfg.MaxBytes > 0 && total > l.cfg.MaxBytes {
		return true, nil
	}
	if l.cfg.MaxAge == 0 {
		return false, nil
	}
	newest, err := l.newestOf(s)
	if err != nil {
		return false, err
	}
	return time.UnixMicro(newest).Before(l.cfg.Now().Add(-l.cfg.MaxAge)), nil
}

// newestOf returns the time of a closed segment's newest record.
func (l *Log) newestOf(s *segment) (int64, error) {
	if t := s.newest.Load(); t != noTime {
		return t, nil
	}
	f, err := l.fs.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return 0, l.wrap("retention", err)
	}
	defer func() { _ = f.Close() }() // only read
	s.idxMu.Lock()
	defer s.idxMu.Unlock()
	if s.idx != nil { // closed a moment ago: the keeper has not written it yet
		return s.idx.newest, nil
	}
	if err := l.loadIndex(s, f); err != nil {
		return 0, err
	}
	t := s.newest.Load()
	s.idx = nil // who reads the segment loads it again
	return t, nil
}

// takeOldest hides the oldest segment from new reads.
func (l *Log) takeOldest() {
	l.listMu.Lock()
	defer l.listMu.Unlock()
	segs := *l.segs.Load()
	rest := append([]*segment(nil), segs[1:]...)
	l.segs.Store(&rest)
	raise(&l.oldest, rest[0].base) // TrimTo may have said more
	for i, s := range l.idle {
		if s == segs[0] {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			break
		}
	}
}

// unlinkTrimmed removes the files of the segment that was trimmed last. Its name
// has to be gone for good before the next segment's may go.
func (l *Log) unlinkTrimmed() error {
	s := l.unlinking
	if s == nil {
		return nil
	}
	if err := l.fs.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.wrap("retention", err)
	}
	if err := l.fs.SyncDir(l.cfg.Dir); err != nil {
		return l.wrap("retention", err)
	}
	l.unlinking = nil
	for _, suffix := range []string{indexSuffix, stateSuffix} {
		err := l.fs.Remove(l.path(s.base, suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.log.Debug("left-over file stays until the next open", "segment", s.path, "suffix", suffix, "err", err)
		}
	}
	return nil
}
