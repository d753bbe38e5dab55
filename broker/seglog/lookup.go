package seglog

import (
	"fmt"

	"felix.dev/felix/broker/vfs"
)

// keepOpen is how many closed segments stay open between reads.
const keepOpen = 16

// lookup returns where to begin reading in a segment to find offset. f is the
// segment's file.
func (l *Log) lookup(s *segment, f vfs.File, offset uint64) (indexEntry, error) {
	s.idxMu.Lock()
	defer s.idxMu.Unlock()
	if err := l.loadIndex(s, f); err != nil {
		return indexEntry{}, err
	}
	e := s.idx.lookup(offset)
	if e.pos == segmentHeaderLen {
		e.offset = s.base
	}
	return e, nil
}

// loadIndex reads a closed segment's index, or rebuilds it; with idxMu held. A
// damaged segment yields the index of its readable part: readers find the damage
// themselves when they come to it.
func (l *Log) loadIndex(s *segment, f vfs.File) error {
	if s.idx != nil {
		return nil
	}
	following := s.following.Load()
	x, err := readIndex(l.fs, l.path(s.base, indexSuffix), s.base, l.cfg.Incarnation)
	if err != nil || x.next != following.base || x.end > s.end.Load() {
		if x, err = buildIndex(f, s, l.cfg.IndexEvery); err != nil {
			return fmt.Errorf("seglog: rebuild index of %s: %w", s.path, err)
		}
		if x.next == following.base {
			l.log.Info("index rebuilt", "segment", s.path)
			_ = l.writeIndex(s, x) // it can be rebuilt again
		}
	}
	s.idx = x
	s.newest.Store(x.newest)
	return nil
}

func readIndex(fsys vfs.FS, path string, base uint64, incarnation [16]byte) (*index, error) {
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	return parseIndex(b, base, incarnation)
}

// buildIndex scans a segment up to its end or the first damage.
func buildIndex(f vfs.File, s *segment, every int) (*index, error) {
	x := &index{end: segmentHeaderLen, next: s.base}
	sc := newScanner(f, s.end.Load(), s.seed, segmentHeaderLen, s.base)
	defer sc.close()
	for {
		pos := sc.pos
		h, _, err := sc.record()
		if err != nil {
			return x, asScanEnd(err)
		}
		x.add(&h, pos, sc.pos, every)
	}
}

// writeIndex stores an index, unsynced. A damaged log is left exactly as it is.
func (l *Log) writeIndex(s *segment, x *index) error {
	if l.corrupt != nil {
		return l.corrupt
	}
	path := l.path(s.base, indexSuffix)
	size := indexHeaderLen + len(x.entries)*indexEntryLen + 4
	err := vfs.WriteFileUnsynced(l.fs, path, appendIndex(make([]byte, 0, size), s.base, l.cfg.Incarnation, x), filePerm)
	if err == nil && s.isRemoved() { // perhaps after retention had removed its index
		_ = l.fs.Remove(path)
	}
	return err
}

// release gives up a reader's reference and closes what was not used for longest.
func (l *Log) release(s *segment) {
	if !s.release() {
		return
	}
	var evicted *segment
	l.listMu.Lock()
	for i, other := range l.idle {
		if other == s {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			break
		}
	}
	l.idle = append(l.idle, s)
	if len(l.idle) > keepOpen {
		evicted = l.idle[0]
		l.idle = append(l.idle[:0], l.idle[1:]...)
	}
	l.listMu.Unlock()
	if evicted != nil {
		evicted.drop()
	}
}
