package seglog

import (
	"errors"
	"fmt"
	"os"
)

// checkSealed checks that a closed segment ends where the next begins. It reads the
// whole segment if the owner has to see its records, or if it has no good index and
// must be known (needEnd); otherwise damage in it is left for its readers to find.
func (l *Log) checkSealed(s *segment, deliver, needEnd bool, rec *Recovery) error {
	following := s.following.Load().base
	if s.damaged != nil {
		return s.damaged
	}
	if !deliver {
		x, err := readIndex(l.fs, l.path(s.base, indexSuffix), s.base, l.cfg.Incarnation)
		if err == nil && x.next == following && x.end <= s.end.Load() {
			s.newest.Store(x.newest)
			return nil
		}
		if err != nil && !needEnd {
			return nil
		}
	}
	f, err := l.fs.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return l.wrap("open segment", err)
	}
	defer func() { _ = f.Close() }() // only read
	sc := newScanner(f, s.end.Load(), s.seed, segmentHeaderLen, s.base)
	defer sc.close()
	x, _, err := l.scan(sc, deliver, rec)
	if asScanEnd(err) != nil {
		return l.wrap("read segment", err)
	}
	if sc.next == following {
		s.newest.Store(x.newest)
		return nil
	}
	reason := fmt.Sprintf("it ends at offset %d but the next segment begins at %d", sc.next, following)
	if !errors.Is(err, errEnd) {
		reason = err.Error()
	}
	return &CorruptionError{Segment: s.base, Offset: min(sc.next, following), Pos: sc.pos, Reason: reason}
}
