package cluster

import (
	"context"
	"fmt"
	"sync"

	"felix.dev/felix/broker/quorum"
)

// machines are the groups' machines of one broker.
type machines struct {
	mu      sync.Mutex
	by      map[uint32]*sum
	removed []uint32
}

func (m *machines) make(group uint32) (quorum.Machine, func(quorum.Leadership), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.by[group] = &sum{}
	return m.by[group], nil, nil
}

func (m *machines) stopped(_ context.Context, group uint32, removed bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, group)
	if removed {
		m.removed = append(m.removed, group)
	}
	return nil
}

// sum of a group; -1 if there is no replica.
func (m *machines) sum(group uint32) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.by[group]; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.n
	}
	return -1
}

func (m *machines) groups() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.by)
}

// sum is a machine that counts what it applies.
type sum struct {
	mu sync.Mutex
	n  int
}

func (s *sum) set(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == nil {
		s.n = 0
		return nil
	}
	_, err := fmt.Sscan(string(data), &s.n)
	return err
}

// Recover implements quorum.Machine.
func (s *sum) Recover(data []byte) error { return s.set(data) }

// Restore implements quorum.Machine.
func (s *sum) Restore(_ uint64, data []byte, _ quorum.Server) error { return s.set(data) }

// Apply implements quorum.Machine.
func (s *sum) Apply(_, _ uint64, data []byte) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += len(data)
	return s.n
}

// Snapshot implements quorum.Machine.
func (s *sum) Snapshot() (quorum.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sumSnapshot(s.n), nil
}

type sumSnapshot int

// Persist implements quorum.Snapshot.
func (s sumSnapshot) Persist() ([]byte, error) { return fmt.Append(nil, int(s)), nil }

// Release implements quorum.Snapshot.
func (sumSnapshot) Release() {}
