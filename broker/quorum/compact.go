package quorum

import (
	"maps"
	"time"
)

// holdTime is how long after the last sign of it an install keeps entries from being
// removed.
const holdTime = 30 * time.Second

// hold keeps the entries from an index on for a follower that installs a snapshot.
type hold struct {
	index uint64
	until time.Time
}

func (s *logStore) hold(follower string, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[follower] = hold{index: index, until: time.Now().Add(holdTime)}
}

// letGo ends a hold a little later: the follower has yet to ask for the entries.
func (s *logStore) letGo(follower string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.holds[follower]; ok {
		h.until = time.Now().Add(holdTime / 3)
		s.holds[follower] = h
	}
}

// press has compaction keep nothing that is not needed for a while: the write-ahead log is full.
func (s *logStore) press() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pressed = time.Now()
}

// pressTime is how long it does so.
const pressTime = 10 * time.Second

// DeleteRange removes entries, which raft does for three reasons. It compacts: what is
// kept is decided here, in bytes. It empties the log, for a snapshot was installed. Or it
// removes what conflicts with its leader's, and stores that right after: then nothing
// is removed yet, so that no failure leaves a hole.
func (s *logStore) DeleteRange(low, high uint64) error {
	if s.isClosed() {
		return ErrClosed
	}
	s.mu.RLock()
	first, last := s.first, s.last()
	s.mu.RUnlock()
	switch {
	case last == 0 || high < first || low > last:
		return nil
	case low <= first && high < last:
		return s.compact(high)
	case low <= first:
		return s.empty(last)
	}
	s.bury(low)
	return nil
}

func (s *logStore) empty(last uint64) error {
	if held := s.store.Last(); held != 0 {
		if err := s.store.TruncateTo(held + 1); err != nil {
			return err
		}
	}
	s.bury(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropTo(min(s.baseIndex, last))
	return nil
}

// compact removes the entries up to high, but for those that followers may need soon.
func (s *logStore) compact(high uint64) error {
	s.mu.Lock()
	high = min(high, s.baseIndex)
	if time.Since(s.pressed) < pressTime {
		clear(s.holds)
	} else {
		high = min(high, s.trailing(s.g.n.cfg.TrailingBytes))
	}
	now := time.Now()
	maps.DeleteFunc(s.holds, func(_ string, h hold) bool { return now.After(h.until) })
	late := false
	for _, h := range s.holds {
		if h.index-1 < high { // the last one of the snapshot is asked for too: its term
			high, late = h.index-1, true
		}
	}
	nothing := high < s.first
	if nothing {
		s.late = late
	}
	s.mu.Unlock()
	if nothing {
		return nil
	}
	if err := s.store.TruncateTo(high + 1); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropTo(high)
	s.late = late
	return nil
}

// overdue tells whether entries stayed for holds that have ended. raft compacts after a
// snapshot only, and where nothing is appended none is taken.
func (s *logStore) overdue(now time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.late {
		return false
	}
	for _, h := range s.holds {
		if !now.After(h.until) {
			return false
		}
	}
	return true
}

// trailing is the highest index that may go so that n bytes of entries stay.
func (s *logStore) trailing(n int64) uint64 {
	i := len(s.marks)
	for i > 0 && n > 0 {
		i--
		n -= int64(s.marks[i].size) + markBytes
	}
	return s.first + uint64(i) - 1
}

// markBytes is what a mark takes besides the entry's data.
const markBytes = 64

// dropTo forgets the marks up to an index.
func (s *logStore) dropTo(index uint64) {
	if index < s.first || len(s.marks) == 0 {
		return
	}
	n := min(index-s.first+1, uint64(len(s.marks)))
	for i, m := range s.marks[:n] {
		s.bytes -= int64(m.size)
		if s.first+uint64(i) > s.baseIndex {
			s.sinceBase -= int64(m.size)
		}
		if m.term == 0 {
			s.buried--
		}
	}
	s.marks = append([]mark(nil), s.marks[n:]...)
	s.first += n
}

// snapshotAt says that there is a snapshot up to an entry.
func (s *logStore) snapshotAt(index, term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.baseIndex, s.baseTerm = index, term
	s.sinceBase = 0
	for i := max(index+1, s.first); len(s.marks) > 0 && i <= s.last(); i++ {
		s.sinceBase += int64(s.marks[i-s.first].size)
	}
}

// based is the newest snapshot's last entry.
func (s *logStore) based() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.baseIndex
}

// grown is what came after the newest snapshot.
func (s *logStore) grown() (entries uint64, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if last := s.last(); last > s.baseIndex {
		entries = last - s.baseIndex
	}
	return entries, s.sinceBase
}
