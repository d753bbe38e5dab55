package seglog

import (
	"errors"
	"fmt"
	"os"

	"felix.dev/felix/broker/vfs"
)

// recover reads the directory, fills the log's fields and repairs it. It runs
// before the log has goroutines.
func (l *Log) recover() (Recovery, error) {
	var rec Recovery
	ls, err := list(l.fs, l.cfg.Dir)
	if err != nil {
		return rec, err
	}
	floor := uint64(0)
	if ls.mark {
		floor = readMark(l.fs, l.cfg.Dir, l.cfg.Incarnation)
	}
	segs, err := l.openSegments(&ls)
	if err != nil {
		return rec, err
	}
	last := l.cfg.First
	if len(segs) > 0 {
		last = segs[len(segs)-1].base
	}
	for _, base := range ls.indexes {
		// Indexes are written for segments whose names are durable, and removed after
		// them. One beyond the last segment says that a segment is missing, unless the log
		// may have been reset.
		if l.cfg.Fsync == FsyncManual {
			break
		}
		if base > last || (len(segs) == 0 && base == last) {
			floor = max(floor, base+1)
		}
	}
	l.segs.Store(&segs)
	if len(segs) == 0 {
		if floor, err = l.journalFloor(floor); err != nil {
			return rec, err
		}
		l.recoverEmpty(floor)
	} else if err := l.recoverSegments(segs, floor, &rec); err != nil {
		return rec, err
	}
	l.synced.Store(l.next.Load())
	if p := l.pending; p != nil && p.seg != nil {
		l.synced.Store(min(l.next.Load(), p.stable)) // until repairNow
	}
	l.durable.Store(l.synced.Load())

	if l.corrupt != nil {
		rec.Corruption, rec.ReadOnly = l.corrupt, l.corrupt
	} else {
		if l.pending != nil {
			rec.ReadOnly = l.repairNow()
		}
		l.removeLeftovers(&ls, &rec)
	}
	rec.Oldest, rec.Next, rec.Segments = l.oldest.Load(), l.next.Load(), len(*l.segs.Load())
	l.logRecovery(&rec)
	return rec, nil
}

func (l *Log) recoverEmpty(floor uint64) {
	first := l.cfg.First
	l.oldest.Store(first)
	l.next.Store(first)
	if floor > first {
		l.next.Store(floor)
		l.corrupt = &CorruptionError{Segment: first, Offset: first, Reason: fmt.Sprintf("it is missing, and the log once reached offset %d", floor)}
		return
	}
	l.pending = &repair{}
}

// openSegments makes the chain of segments and checks their headers.
func (l *Log) openSegments(ls *listing) ([]*segment, error) {
	segs := make([]*segment, 0, len(ls.segments))
	for _, base := range ls.segments {
		s := l.newSegment(base)
		size, err := l.checkHeader(s)
		if !errors.As(err, &s.damaged) && err != nil {
			return nil, err
		}
		s.end.Store(size)
		if n := len(segs); n > 0 {
			segs[n-1].following.Store(s)
		}
		segs = append(segs, s)
	}
	return segs, nil
}

// checkHeader returns a *CorruptionError for a header that is damaged and ErrFormat
// for one that is not ours.
func (l *Log) checkHeader(s *segment) (size int64, err error) {
	f, err := l.fs.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return 0, l.wrap("open segment", err)
	}
	defer func() { _ = f.Close() }() // only read
	size, err = f.Size()
	if err != nil {
		return 0, l.wrap("open segment", err)
	}
	h, err := readSegmentHeader(f, s.base)
	if err == nil && h.incarnation != l.cfg.Incarnation {
		err = fmt.Errorf("%w: incarnation of %s is %x, not %x", ErrFormat, s.path, h.incarnation, l.cfg.Incarnation)
	}
	return size, err
}

// recoverSegments restores the owner's state, checks how segments follow each other
// and finds the end of the last one.
func (l *Log) recoverSegments(segs []*segment, floor uint64, rec *Recovery) error {
	last := segs[len(segs)-1]
	l.oldest.Store(segs[0].base)
	from, err := l.restoreState(segs, rec)
	if err != nil {
		return err
	}
	l.stateFrom.Store(rec.StateFrom)
	for i, s := range segs[:len(segs)-1] {
		err := l.checkSealed(s, i >= from, i == len(segs)-2, rec)
		if bad, ok := errors.AsType[*CorruptionError](err); ok {
			l.noteCorruption(bad)
		} else if err != nil {
			return err
		}
	}
	return l.recoverLast(last, floor, rec)
}

func (l *Log) noteCorruption(bad *CorruptionError) {
	if l.corrupt == nil {
		l.corrupt = bad
	}
}

// scan reads records until the scanner's end, which err tells. stable is the first
// offset that none of them knows to be durable.
func (l *Log) scan(sc *scanner, deliver bool, rec *Recovery) (x *index, stable uint64, err error) {
	x = &index{end: sc.pos, next: sc.next}
	for {
		pos := sc.pos
		h, body, err := sc.record()
		if err != nil {
			return x, stable, err
		}
		rec.Scanned++
		x.add(&h, pos, sc.pos, l.cfg.IndexEvery)
		stable = max(stable, h.stable)
		if deliver && l.cfg.OnRecover != nil {
			l.cfg.OnRecover(h.record(body))
		}
	}
}

// recoverLast finds the end of the last segment and decides what lies behind it:
// nothing, a torn tail, or damage.
func (l *Log) recoverLast(s *segment, floor uint64, rec *Recovery) error {
	if s.damaged != nil {
		l.noteCorruption(s.damaged)
		s.end.Store(segmentHeaderLen)
		s.idx = &index{}
		l.next.Store(max(floor, s.base+1))
		return nil
	}
	f, err := l.fs.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return l.wrap("open segment", err)
	}
	defer func() { _ = f.Close() }() // only read
	size := s.end.Load()
	sc := newScanner(f, size, s.seed, segmentHeaderLen, s.base)
	defer sc.close()
	x, stable, scanErr := l.scan(sc, true, rec)
	if asScanEnd(scanErr) != nil {
		return l.wrap("read segment", scanErr)
	}
	s.idx = x
	s.end.Store(sc.pos)
	l.next.Store(sc.next)

	more, err := l.lookAtJournal(s, sc.next)
	if err != nil {
		return err
	}
	end, err := judgeTail(sc, scanErr, s.base, max(floor, more.stable))
	if err != nil {
		return l.wrap("read segment", err)
	}
	if end.bad != nil {
		l.next.Store(max(end.next, more.top))
		l.noteCorruption(end.bad)
		return nil
	}
	if l.corrupt != nil { // elsewhere: nothing is changed
		l.next.Store(max(sc.next, more.top))
		return nil
	}
	rec.Cut = end.cut
	stable = max(floor, stable, more.stable, s.base)
	r := &repair{seg: s, cut: rec.Cut != nil, stable: stable, rewrite: sc.pos, stale: more.top > more.next}
	if stable < sc.next {
		if r.rewrite, err = findOffset(f, s, stable); err != nil {
			return l.wrap("read segment", err)
		}
	}
	l.pending = r
	if more.next > sc.next {
		if err := l.takeFromJournal(s, r, rec); err != nil {
			return err
		}
	}
	l.syncDirs = true // this segment's creator may have died before it had synced its name
	return nil
}

// findOffset returns the position of the record that holds an offset.
func findOffset(f vfs.File, s *segment, offset uint64) (int64, error) {
	e := s.idx.lookup(offset)
	if e.pos == segmentHeaderLen {
		e.offset = s.base
	}
	sc := newScanner(f, s.end.Load(), s.seed, e.pos, e.offset)
	defer sc.close()
	for {
		pos := sc.pos
		h, _, err := sc.record()
		if err != nil || h.next() > offset {
			return pos, asScanEnd(err)
		}
	}
}
