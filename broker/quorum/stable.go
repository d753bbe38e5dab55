package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// StateStore is a durable store of a few small values.
type StateStore interface {
	// Get returns nil if there is no such value.
	Get(key string) ([]byte, error)
	// Set returns nil when the value is durable.
	Set(key string, value []byte) error
	Close() error
}

// stableStore is a group's raft.StableStore: the term, and who it was that this server
// voted for. Values carry a checksum. What is read and written is remembered, so that
// raft's habit of writing the term it has costs nothing.
type stableStore struct {
	g     *Group
	store StateStore

	mu     sync.Mutex // held while the store writes
	cached map[string][]byte
	closed chan struct{}
	once   sync.Once
}

var _ raft.StableStore = (*stableStore)(nil)

// Keys. Those of raft are its own; keyServer says whose state it is.
const (
	keyTerm     = "CurrentTerm"
	keyVoteTerm = "LastVoteTerm"
	keyVoted    = "LastVoteCand"
	keyServer   = "FelixServer"
)

// errNotFound has the text that raft looks for.
var errNotFound = errors.New("not found")

// openStable reads all values and checks whose they are; a store without any becomes self's.
func openStable(g *Group, store StateStore, path string) (*stableStore, error) {
	s := &stableStore{g: g, store: store, cached: map[string][]byte{}, closed: make(chan struct{})}
	for _, key := range []string{keyServer, keyTerm, keyVoteTerm, keyVoted} {
		sealed, err := store.Get(key)
		if err != nil {
			return nil, g.damaged(path, "value "+key, err)
		}
		if sealed == nil {
			continue
		}
		v, ok := unseal(key, sealed)
		if !ok || (key == keyTerm || key == keyVoteTerm) && len(v) != 8 {
			return nil, g.damaged(path, "checksum of value "+key, nil)
		}
		s.cached[key] = v
	}
	self := g.n.cfg.Self.String()
	switch owner, ok := s.cached[keyServer]; {
	case ok && string(owner) != self:
		return nil, g.damaged(path, fmt.Sprintf("it belongs to server %s, this is %s", owner, self), nil)
	case !ok && len(s.cached) > 0:
		return nil, g.damaged(path, "it does not say whose it is", nil)
	case !ok:
		if err := s.write(keyServer, []byte(self)); err != nil {
			return nil, fmt.Errorf("quorum: group %d: %s: %w", g.id, path, err)
		}
	}
	return s, nil
}

// fresh tells whether this server has taken no part in the group yet.
func (s *stableStore) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	term, voted := s.cached[keyTerm], s.cached[keyVoteTerm]
	return voted == nil && (term == nil || binary.BigEndian.Uint64(term) <= 1)
}

// Get implements raft.StableStore, as do the three methods below.
func (s *stableStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.cached[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return append([]byte(nil), v...), nil
}

// GetUint64 gives a number.
func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil || len(v) != 8 {
		return 0, errNotFound
	}
	return binary.BigEndian.Uint64(v), nil
}

// Set stores a value, durable when it returns nil.
func (s *stableStore) Set(key, value []byte) error { return s.write(string(key), value) }

// SetUint64 stores a number. raft panics when its term cannot be stored, so for as
// long as it cannot this waits, with the group stuck. When the group closes meanwhile it returns nil although
// nothing was stored: by then the log refuses every write, and nobody is answered any more.
func (s *stableStore) SetUint64(key []byte, value uint64) error {
	k := string(key)
	v := binary.BigEndian.AppendUint64(nil, value)
	if _, err := s.Get(key); err != nil && value == 0 {
		return nil // it is what no value means
	}
	for {
		err := s.write(k, v)
		if err == nil || k != keyTerm {
			return err
		}
		select {
		case <-s.closed:
			return nil
		case <-time.After(retryAfter):
		}
	}
}

// retryAfter is how long storage that failed is left alone.
const retryAfter = 200 * time.Millisecond

func (s *stableStore) write(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.cached[key]; ok && string(v) == string(value) {
		return nil
	}
	select {
	case <-s.closed:
		return ErrClosed
	default:
	}
	stop := s.g.watch.begin(watchState)
	err := s.store.Set(key, seal(key, value))
	stop(err)
	if err != nil {
		return fmt.Errorf("quorum: group %d: state store: %w", s.g.id, err)
	}
	s.cached[key] = append([]byte(nil), value...)
	return nil
}

// end has whoever waits for the store go on.
func (s *stableStore) end() { s.once.Do(func() { close(s.closed) }) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts a CRC-32C of key and value before the value.
func seal(key string, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, value)
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
}

func unseal(key string, sealed []byte) ([]byte, bool) {
	if len(sealed) < 4 {
		return nil, false
	}
	sum := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, sealed[4:])
	return sealed[4:], sum == binary.BigEndian.Uint32(sealed)
}
