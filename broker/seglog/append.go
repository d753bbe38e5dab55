package seglog

import (
	"errors"
	"fmt"
	"sync"
)

// appendBufs holds claims as they go to disk. It is shared by all logs: most of a
// broker's many logs are idle at any moment. A buffer that was needed for one large
// record isn't kept.
var appendBufs = sync.Pool{New: func() any { return new([]byte) }}

const keepAppendBuf = 4 << 20

// Append writes records behind the last one. It returns when they are written but
// before they are durable: Config.Committed tells that. Either all of them are in
// the log or none is; after ErrDiskFull and ErrReadOnly none is, and the same
// records may be appended again later. Records and frames are the caller's again
// when it returns. It must not be called from two goroutines at once.
func (l *Log) Append(recs []Record) error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if len(recs) == 0 {
		return nil
	}
	if err := l.Err(); err != nil {
		return err
	}
	next, size := l.next.Load(), int64(0)
	for i := range recs {
		r := &recs[i]
		if err := checkRecord(r, next); err != nil {
			return err
		}
		next += uint64(r.Count)
		size += recordHeaderLen + int64(len(r.Frame))
		if r.HasProducer {
			size += producerLen
		}
	}
	w, err := l.ready(size)
	if err != nil {
		return err
	}

	pos, stable := w.seg.end.Load(), l.synced.Load()
	pooled := appendBufs.Get().(*[]byte) //nolint:errcheck // the pool holds nothing else
	if int64(cap(*pooled)) < size {
		*pooled = make([]byte, 0, size)
	}
	buf := (*pooled)[:0]
	for i := range recs {
		buf = appendRecord(buf, &recs[i], w.seg.seed, stable)
	}
	defer func() {
		if cap(buf) <= keepAppendBuf {
			appendBufs.Put(pooled)
		}
	}()
	w.fill.claim(pos + size)
	if n, err := w.file.WriteAt(buf, pos); err != nil {
		return l.writeFailed(w, pos, n, err)
	}

	at := pos
	for i := range recs {
		at = w.seg.noteRecord(&recs[i], at, l.cfg.IndexEvery)
	}
	w.seg.end.Store(at)
	l.next.Store(next)
	l.appends.Add(1)
	l.appended.Add(size)
	if l.journal(recs[0].Base, next, buf) {
		l.direct.Store(false)
		return nil
	}
	l.direct.Store(true)
	raise(&l.need, next)
	if l.cfg.Fsync != FsyncManual || l.cfg.Committed != nil {
		wake(l.kick)
	}
	if l.cfg.Prefill && w.wantsFill(&l.cfg) {
		wake(l.work)
	}
	return nil
}

// noteRecord adds a written record to the active segment's index. Only a new entry
// needs the lock: readers look at nothing else of it.
func (s *segment) noteRecord(r *Record, pos int64, every int) (end int64) {
	end = pos + recordHeaderLen + int64(len(r.Frame))
	if r.HasProducer {
		end += producerLen
	}
	if s.idx.wantsEntry(pos, every) {
		s.idxMu.Lock()
		s.idx.entries = append(s.idx.entries, indexEntry{offset: r.Base, pos: pos})
		s.idxMu.Unlock()
	}
	s.idx.extend(r.Base+uint64(r.Count), r.TimeMicros, end)
	return end
}

// writeFailed takes back what a failed write left behind the end: if the process
// died now, its whole records would come to life at the next Open though the
// caller was told that they are not there.
func (l *Log) writeFailed(w *writer, pos int64, n int, err error) error {
	final, err := classify(fmt.Sprintf("write %s", w.seg.path), err)
	if final {
		l.poison(err)
		return err
	}
	if n > 0 {
		l.badTail = true
		if cutErr := l.cutBadTail(w, pos); errors.Is(cutErr, ErrPoisoned) {
			return cutErr // they may be back: that is not a plain refusal
		} else if cutErr != nil {
			l.log.Warn("bytes of a failed append stay behind the end for now", "dir", l.cfg.Dir, "err", cutErr)
		}
	} else {
		w.fill.claim(pos)
	}
	return err
}

// cutBadTail removes the bytes of a failed append, for good.
func (l *Log) cutBadTail(w *writer, pos int64) error {
	if err := w.fill.truncate(w.file, pos); err != nil {
		final, err := classify(fmt.Sprintf("cut %s", w.seg.path), err)
		if final {
			l.poison(err)
		}
		return err
	}
	l.badTail = false
	return l.waitSync()
}

// ready returns the writer to append size bytes with, after whatever must come
// first: repairs that Open had to put off, and the next segment.
func (l *Log) ready(size int64) (*writer, error) {
	if l.pending != nil {
		if err := l.repairNow(); err != nil {
			return nil, err
		}
	}
	w := l.active.Load()
	if w != nil && l.badTail {
		if err := l.cutBadTail(w, w.seg.end.Load()); err != nil {
			return nil, err
		}
	}
	if l.syncDirs {
		if err := l.fs.SyncDir(l.cfg.Dir); err != nil {
			return nil, l.fail("sync directory", err)
		}
		l.syncDirs = false
	}
	if end := w.seg.end.Load(); end > segmentHeaderLen && end+size > l.cfg.SegmentBytes {
		if err := l.roll(); err != nil {
			return nil, err
		}
		w = l.active.Load()
	}
	return w, nil
}

// fail classifies an error of a step whose failure leaves unknown what is durable.
func (l *Log) fail(op string, err error) error {
	final, err := classify(op+" "+l.cfg.Dir, err)
	if final {
		l.poison(err)
	}
	return err
}
