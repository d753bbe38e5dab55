package quorum

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/wal"
)

// entries is what a group needs of wal.Entries.
type entries interface {
	First() uint64
	Last() uint64
	Get(index uint64) (wal.Entry, error)
	Append(entries []wal.Entry) error
	TruncateFrom(index uint64) error
	TruncateTo(index uint64) error
	Forget() error
}

// logStore is a group's raft.LogStore. It keeps in memory what raft asks for most:
// terms and types. raft is given commands without their data, which whoever needs it
// loads: so hundreds of entries may wait for a machine or a follower and cost nothing.
type logStore struct {
	g     *Group
	store entries
	// stored is told of each StoreLogs.
	stored func(n, bytes int, took time.Duration, err error)

	mu    sync.RWMutex
	first uint64 // of marks
	marks []mark
	// base is the newest snapshot's last entry, which raft asks for although it may be gone.
	baseIndex, baseTerm uint64
	bytes               int64 // of all marks
	sinceBase           int64 // of those after base
	buried              int   // marks with term 0
	holds               map[string]hold
	late                bool // the last compaction left entries for holds
	pressed             time.Time
	closed              bool
}

// mark is an entry without its data. Term 0 is one that raft believes in and that is
// not there any more: no other entry is taken for it, and raft writes what belongs there.
type mark struct {
	term uint64
	size uint32
	typ  raft.LogType
}

var (
	_ raft.LogStore          = (*logStore)(nil)
	_ raft.MonotonicLogStore = (*logStore)(nil)
)

// openLog reads what the store holds. base is the newest snapshot's last entry.
func openLog(g *Group, store entries, baseIndex, baseTerm uint64) (*logStore, error) {
	s := &logStore{
		g: g, store: store, stored: func(int, int, time.Duration, error) {},
		baseIndex: baseIndex, baseTerm: baseTerm, holds: map[string]hold{},
	}
	first, last := store.First(), store.Last()
	if first == 0 {
		return s, nil
	}
	if first > baseIndex+1 {
		return nil, g.damaged("the write-ahead log", fmt.Sprintf("entries begin at %d, the snapshot ends at %d", first, baseIndex), nil)
	}
	s.first = first
	for i := first; i <= last; i++ {
		e, err := store.Get(i)
		if err != nil {
			return nil, g.damaged("the write-ahead log", fmt.Sprintf("entry %d of %d to %d", i, first, last), err)
		}
		s.push(mark{term: e.Term, size: uint32(len(e.Data)), typ: raft.LogType(e.Type)})
	}
	return s, nil
}

// push appends a mark; s.mu is held, or nobody else knows s.
func (s *logStore) push(m mark) {
	if s.first+uint64(len(s.marks)) > s.baseIndex {
		s.sinceBase += int64(m.size)
	}
	s.marks = append(s.marks, m)
	s.bytes += int64(m.size)
}

// IsMonotonic has raft empty the log when a snapshot is installed (B74).
func (s *logStore) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore, as do LastIndex to DeleteRange.
func (s *logStore) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.marks) == 0 {
		return 0, nil
	}
	return s.first, nil
}

// LastIndex is the highest index that raft believes in.
func (s *logStore) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last(), nil
}

func (s *logStore) last() uint64 {
	if len(s.marks) == 0 {
		return 0
	}
	return s.first + uint64(len(s.marks)) - 1
}

func (s *logStore) at(index uint64) (mark, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.marks) > 0 && index >= s.first && index <= s.last() {
		return s.marks[index-s.first], true
	}
	// A follower must be able to confirm the entry before those that it lacks. The first
	// of all is left out: there raft would send it rather than ask for it.
	if index > 1 && index == s.baseIndex {
		return mark{term: s.baseTerm, typ: raft.LogNoop}, true
	}
	return mark{}, false
}

// GetLog gives an entry, a command without its data.
func (s *logStore) GetLog(index uint64, into *raft.Log) error {
	m, ok := s.at(index)
	if !ok {
		return raft.ErrLogNotFound
	}
	*into = raft.Log{Index: index, Term: m.term, Type: m.typ}
	if m.typ == raft.LogCommand || m.size == 0 || m.term == 0 {
		return nil
	}
	data, err := s.load(index, m.term)
	into.Data = data
	return err
}

// load gives an entry's data. It must not be changed.
func (s *logStore) load(index, term uint64) ([]byte, error) {
	e, err := s.store.Get(index)
	switch {
	case errors.Is(err, wal.ErrNotFound):
		return nil, raft.ErrLogNotFound
	case err != nil:
		return nil, fmt.Errorf("quorum: group %d: entry %d: %w", s.g.id, index, err)
	case e.Term != term:
		return nil, fmt.Errorf("quorum: group %d: entry %d is of term %d, not %d", s.g.id, index, e.Term, term)
	}
	return e.Data, nil
}

// StoreLog stores one entry.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries, durable when it returns nil. What raft had removed, or
// what an append left that failed, is overwritten.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	if s.isClosed() {
		return ErrClosed
	}
	began := time.Now()
	stop := s.g.watch.begin(watchLog)
	size, err := s.write(logs)
	stop(err)
	s.stored(len(logs), size, time.Since(began), err)
	return err
}

func (s *logStore) write(logs []*raft.Log) (size int, err error) {
	batch := make([]wal.Entry, len(logs))
	for i, l := range logs {
		batch[i] = wal.Entry{Index: l.Index, Term: l.Term, Type: uint8(l.Type), Data: l.Data}
		size += len(l.Data)
	}
	from := logs[0].Index
	if err := s.leap(from); err != nil {
		return size, err
	}
	if last := s.store.Last(); last != 0 && from <= last {
		if err := s.store.TruncateFrom(from); err != nil {
			return size, err
		}
	}
	s.bury(from)
	if err := s.store.Append(batch); err != nil {
		return size, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.marks) == 0 || from < s.first {
		s.marks, s.bytes, s.sinceBase, s.buried, s.first = nil, 0, 0, 0, from
	} else {
		s.cut(from)
	}
	for _, l := range logs {
		s.push(mark{term: l.Term, size: uint32(len(l.Data)), typ: l.Type})
	}
	return size, nil
}

// leap removes entries that end before an installed snapshot, if it could not be done as
// that was installed, or a crash came first: what comes next follows the snapshot, not them.
func (s *logStore) leap(from uint64) error {
	s.mu.RLock()
	last, base := s.last(), s.baseIndex
	s.mu.RUnlock()
	if last == 0 || last+1 >= from || last > base {
		return nil
	}
	return s.empty(last)
}

// bury marks the entries from an index on as gone: raft goes on believing in them
// until it has stored others.
func (s *logStore) bury(from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := max(from, s.first); len(s.marks) > 0 && i <= s.last(); i++ {
		m := &s.marks[i-s.first]
		if m.term == 0 {
			continue
		}
		s.bytes -= int64(m.size)
		if i > s.baseIndex {
			s.sinceBase -= int64(m.size)
		}
		*m = mark{typ: raft.LogNoop}
		s.buried++
	}
}

// torn tells whether raft believes in entries that are gone. It must not lead with them.
func (s *logStore) torn() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.buried > 0
}

// cut forgets the marks from an index on, all of which are buried.
func (s *logStore) cut(from uint64) {
	if from <= s.last() {
		s.buried -= int(s.last() - from + 1)
		s.marks = s.marks[:from-s.first]
	}
}

func (s *logStore) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// close has every write fail from now on: raft is on its way out, and may have been
// told things by then that are not so.
func (s *logStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
