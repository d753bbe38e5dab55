package seglog

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"felix.dev/felix/broker/vfs"
)

// prefillSizes say how much is filled with zeros ahead of use, and when.
type prefillSizes struct {
	after    int64 // nothing before a segment holds this much: most logs are small
	min, max int64 // as much as the segment holds, within these
	chunk    int64 // bytes written and flushed at a time: what an append may have to wait for
}

var defaultPrefill = prefillSizes{after: 64 << 10, min: 1 << 20, max: 16 << 20, chunk: 1 << 20}

// fillRetry is how long the keeper leaves a disk alone that refused its zeros.
const fillRetry = 10 * time.Second

// ahead is how far beyond used the file should reach.
func (p *prefillSizes) ahead(used int64) int64 {
	if used < p.after {
		return 0
	}
	return min(max(used, p.min), p.max)
}

// prepared is a zero-filled file that a roll can take.
type prepared struct {
	file vfs.File
	path string
	size int64
}

// wantsFill says whether the keeper should be woken: half of what lay ahead is used.
func (w *writer) wantsFill(cfg *Config) bool {
	used := w.seg.end.Load()
	ahead := w.fill.ahead()
	return used+ahead < cfg.SegmentBytes && ahead < cfg.prefill.ahead(used)/2 ||
		used > cfg.SegmentBytes/2 && used < cfg.SegmentBytes/2+cfg.prefill.min
}

// runKeeper does what can wait: it finishes closed segments, removes old ones and
// fills files with zeros ahead of use. It holds no lock while it does.
func (l *Log) runKeeper() {
	defer l.wg.Done()
	// Only closed segments age, so that a log without any has no timer either.
	period := min(max(l.cfg.MaxAge/8, time.Second), time.Minute)
	timer := time.NewTimer(period)
	defer timer.Stop()
	var notBefore time.Time // of the next attempt to fill
	for {
		if l.cfg.MaxAge > 0 && len(*l.segs.Load()) > 1 {
			timer.Reset(period)
		} else {
			timer.Stop()
		}
		select {
		case <-l.work:
		case <-timer.C:
			l.trimAndLog()
			continue
		case <-l.stopping:
			l.finishClosed()
			return
		}
		if l.finishClosed() {
			l.trimAndLog()
		}
		if !l.cfg.Prefill || !l.direct.Load() || time.Now().Before(notBefore) {
			continue
		}
		if err := l.fillAhead(); err != nil {
			notBefore = time.Now().Add(fillRetry)
			l.log.Debug("segments are not filled ahead for a while", "dir", l.cfg.Dir, "err", err)
		}
	}
}

// trimAndLog says once what keeps retention from its work, however often it tries.
func (l *Log) trimAndLog() {
	trouble := ""
	if _, err := l.Trim(); err != nil {
		trouble = err.Error()
	}
	if trouble != l.trimTrouble && trouble != "" {
		l.log.Warn("retention cannot remove old segments, it tries again from time to time", "dir", l.cfg.Dir, "err", trouble)
	}
	l.trimTrouble = trouble
}

// finishClosed gives back the zeros that closed segments did not need and writes
// their indexes. None of it has to survive a crash.
func (l *Log) finishClosed() bool {
	l.mu.Lock()
	closed := l.finish
	l.finish = nil
	l.mu.Unlock()
	for _, w := range closed {
		end := w.seg.end.Load()
		if size, err := w.file.Size(); err != nil || size > end {
			if err = w.file.Truncate(end); err != nil {
				l.log.Debug("zeros stay behind a closed segment", "segment", w.seg.path, "err", err)
			}
		}
		w.close()
		w.seg.idxMu.Lock()
		w.seg.newest.Store(w.seg.idx.newest)
		if err := l.writeIndex(w.seg, w.seg.idx); err == nil {
			w.seg.idx = nil // read again when somebody needs it
		}
		w.seg.idxMu.Unlock()
	}
	return len(closed) > 0
}

// fillAhead extends the zeros of the active segment and then prepares the next.
func (l *Log) fillAhead() error {
	w := l.active.Load()
	if w == nil {
		return nil
	}
	used := w.seg.end.Load()
	if want := l.cfg.prefill.ahead(used); w.fill.ahead() < want {
		if err := l.fillSegment(w, min(used+want, l.cfg.SegmentBytes)); err != nil {
			return err
		}
	}
	l.mu.Lock()
	have := l.prepared != nil
	l.mu.Unlock()
	if have || used <= l.cfg.SegmentBytes/2 || l.cfg.SegmentBytes < l.cfg.prefill.min {
		return nil
	}
	return l.prepare()
}

// fillSegment works through a handle of its own (see writer).
func (l *Log) fillSegment(w *writer, limit int64) error {
	f, err := l.fs.OpenFile(w.seg.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // zeros only
	zeros := make([]byte, l.cfg.prefill.chunk)
	for !l.isStopping() && w.seg.following.Load() == nil {
		from, to, ok := w.fill.begin(limit, l.cfg.prefill.chunk)
		if !ok {
			return nil
		}
		if _, err := f.WriteAt(zeros[:to-from], from); err != nil {
			w.fill.finish(0)
			return err
		}
		w.fill.finish(to)
		if err := f.Datasync(); err != nil {
			// The flush was of records as well.
			l.poison(fmt.Errorf("%w: flush %s: %w", ErrPoisoned, w.seg.path, err))
			return err
		}
	}
	return nil
}

func (l *Log) prepare() error {
	// Never the name of an earlier one: a roll may be about to rename that.
	l.preparedCount++
	path := filepath.Join(l.cfg.Dir, fmt.Sprintf(preparedName, l.preparedCount))
	f, err := l.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	size := min(l.cfg.prefill.max, l.cfg.SegmentBytes)
	if err := l.zeroFile(f, size); err != nil {
		_ = f.Close()
		_ = l.fs.Remove(path)
		return err
	}
	l.mu.Lock()
	l.prepared = &prepared{file: f, path: path, size: size}
	l.mu.Unlock()
	return nil
}

func (l *Log) zeroFile(f vfs.File, size int64) error {
	zeros := make([]byte, min(l.cfg.prefill.chunk, size))
	for pos := int64(0); pos < size; pos += int64(len(zeros)) {
		if l.isStopping() {
			return ErrClosed
		}
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-pos)], pos); err != nil {
			return err
		}
		if err := f.Datasync(); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) takePrepared() *prepared {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.prepared
	l.prepared = nil
	return p
}

func (l *Log) isStopping() bool {
	select {
	case <-l.stopping:
		return true
	default:
		return false
	}
}
