package seglog

import (
	"errors"
	"sort"
)

// Records reads whole records, hidden ones included, with what their headers say: as
// many from the one that holds offset from on as maxBytes has room for, but at least
// one. The first may begin before from. None and no error: the log ends at or before
// from. Frames lie in buf if it is large enough, and in what is returned in its place.
//
// A *TooOldError says that retention has been here, a *CorruptionError that the record
// is damaged.
func (l *Log) Records(from uint64, maxBytes int, buf []byte) ([]Record, []byte, error) {
	out, buf := []Record(nil), buf[:0]
	for len(out) == 0 && from < l.Next() {
		segs := *l.segs.Load()
		i := sort.Search(len(segs), func(i int) bool { return segs[i].base > from }) - 1
		switch {
		case i < 0 && l.corrupt != nil && len(segs) == 0:
			return nil, buf, l.corrupt
		case i < 0:
			return nil, buf, &TooOldError{Requested: from, Oldest: l.Oldest()}
		case segs[i].damaged != nil:
			l.damaged.Add(1)
			return nil, buf, segs[i].damaged
		}
		var again bool
		var err error
		if out, buf, again, err = l.recordsOf(segs[i], from, maxBytes, buf); err != nil {
			return nil, buf, err
		}
		if len(out) == 0 && !again {
			break
		}
	}
	return out, buf, nil
}

// recordsOf reads from one segment; again says that it is gone and another may be there.
func (l *Log) recordsOf(s *segment, from uint64, maxBytes int, buf []byte) (out []Record, _ []byte, again bool, err error) {
	f, ok, err := s.acquire(l.fs)
	if err != nil {
		return nil, buf, false, err
	}
	if !ok {
		return nil, buf, true, nil
	}
	defer l.release(s)
	e, err := l.lookup(s, f, from)
	if err != nil {
		return nil, buf, false, err
	}
	limit := l.Next()
	sc := newScanner(f, s.end.Load(), s.seed, e.pos, e.offset)
	defer sc.close()
	for sc.next < limit {
		if follows := s.following.Load(); follows != nil && sc.next >= follows.base {
			break
		}
		h, body, err := sc.record()
		if err != nil {
			if len(out) > 0 {
				break // who reads on meets it again
			}
			if asScanEnd(err) != nil {
				return nil, buf, false, l.wrap("read "+s.path, err)
			}
			l.damaged.Add(1)
			c := Cursor{l: l, seg: s, pos: sc.pos, at: sc.next}
			if errors.Is(err, errEnd) {
				err = errNotRecord
			}
			return nil, buf, false, c.damage(err)
		}
		if h.next() <= from {
			continue
		}
		if len(out) > 0 && len(buf)+len(body) > maxBytes {
			break
		}
		at := len(buf)
		buf = append(buf, body...)
		out = append(out, h.record(buf[at:len(buf):len(buf)]))
	}
	return out, buf, false, nil
}
