package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// entryVersion is the version of the form of entries and manifests of the metadata
// group; docs/format/cluster.md.
const entryVersion = 1

// maxRecent is how many applied entries are remembered by their ids. An entry is
// proposed again within seconds, if at all.
const maxRecent = 1024

// logEntry is an entry of the metadata group.
type logEntry struct {
	Version int             `json:"v"`
	ID      string          `json:"id"`      // random; an entry that is in the log twice is applied once
	Command json.RawMessage `json:"command"` // as package catalog encodes it
}

// manifest is a snapshot of the metadata group.
type manifest struct {
	Version int      `json:"v"`
	Index   uint64   `json:"index"`            // of the last entry that is in it
	Recent  []string `json:"recent,omitempty"` // ids of entries, oldest first
	State   []byte   `json:"state"`
}

// machine is the catalog as the state machine of the metadata group.
type machine struct {
	changed func(*catalog.State) // called after every change, in order; quick
	lost    func(error)          // told when the log cannot be followed any more

	state atomic.Pointer[catalog.State]

	// Of the goroutine that applies.
	recent []string
	broken error // the log is not followed from here on

	mu      sync.Mutex
	waiters map[string]chan applied // by entry id; each has room for one
	index   uint64                  // up to where the log is applied
	passed  chan struct{}           // closed and replaced when index moves
}

// applied is what came of an entry.
type applied struct {
	index  uint64
	result catalog.Result
}

var _ quorum.Machine = (*machine)(nil)

func newMachine(changed func(*catalog.State), lost func(error)) *machine {
	m := &machine{changed: changed, lost: lost, waiters: make(map[string]chan applied), passed: make(chan struct{})}
	m.state.Store(catalog.New())
	return m
}

// newEntry makes an entry of a command; its id is for expect.
func newEntry(cmd catalog.Command, at time.Time) (id string, data []byte, err error) {
	command, err := catalog.EncodeCommand(cmd, at)
	if err != nil {
		return "", nil, fmt.Errorf("cluster: encode command: %w", err)
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	id = hex.EncodeToString(b[:])
	data, err = json.Marshal(logEntry{Version: entryVersion, ID: id, Command: command})
	return id, data, err
}

// Recover takes the newest snapshot of this broker.
func (m *machine) Recover(data []byte) error {
	if data == nil {
		return nil
	}
	return m.take(data)
}

func (m *machine) take(data []byte) error {
	var from manifest
	if err := json.Unmarshal(data, &from); err != nil {
		return fmt.Errorf("cluster: read manifest of the catalog: %w", err)
	}
	if from.Version > entryVersion {
		return refuse(CodeVersion, "the catalog's manifest has format version %d, and this release reads up to %d: start a release that reads it",
			from.Version, entryVersion)
	}
	st, err := catalog.DecodeState("the catalog's manifest", from.State)
	if err != nil {
		return fmt.Errorf("cluster: read manifest of the catalog: %w", err)
	}
	m.recent = from.Recent
	m.advance(st, from.Index, "", catalog.Result{})
	return nil
}

// Apply applies an entry. One that cannot be read is of a later release: going on
// as if it had not been there would make this broker's catalog another one than
// that of the others, so it goes no further.
func (m *machine) Apply(index, _ uint64, data []byte) any {
	st := m.state.Load()
	if m.broken != nil {
		return applied{index: index, result: catalog.Result{Err: m.broken}}
	}
	if at, _ := m.progress(); index <= at {
		return applied{index: index} // in the snapshot that was recovered
	}
	e, err := readEntry(data)
	if err != nil {
		return m.lose(index, err)
	}
	if slices.Contains(m.recent, e.ID) {
		m.advance(st, index, "", catalog.Result{})
		return applied{index: index}
	}
	next, result, err := st.ApplyEncoded(index, e.Command)
	if err != nil {
		return m.lose(index, err)
	}
	m.recent = append(m.recent, e.ID)
	if len(m.recent) > maxRecent {
		m.recent = slices.Clone(m.recent[len(m.recent)-maxRecent:])
	}
	m.advance(next, index, e.ID, result)
	return applied{index: index, result: result}
}

func (m *machine) lose(index uint64, err error) applied {
	m.broken = refuse(CodeVersion, "the catalog has an entry (%d) that this release cannot read (%v): start the release that the other brokers have", index, err)
	m.lost(m.broken)
	return applied{index: index, result: catalog.Result{Err: m.broken}}
}

func readEntry(data []byte) (logEntry, error) {
	var e logEntry
	if err := json.Unmarshal(data, &e); err != nil {
		return e, err
	}
	if e.Version > entryVersion {
		return e, fmt.Errorf("version %d", e.Version)
	}
	return e, nil
}

// advance publishes a state and tells whoever waits for it.
func (m *machine) advance(st *catalog.State, index uint64, id string, result catalog.Result) {
	before := m.state.Swap(st)
	if before.Version() != st.Version() {
		m.changed(st)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiters[id]; w != nil {
		delete(m.waiters, id)
		w <- applied{index: index, result: result}
	}
	if index > m.index {
		m.index = index
		close(m.passed)
		m.passed = make(chan struct{})
	}
}

// expect has the outcome of an entry sent once it is applied here.
func (m *machine) expect(id string) (outcome <-chan applied, forget func()) {
	w := make(chan applied, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiters[id] = w
	return w, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiters, id)
	}
}

// progress is up to where the log is applied, and what is closed when there is
// more.
func (m *machine) progress() (uint64, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index, m.passed
}

// Snapshot notes the state, which is immutable.
func (m *machine) Snapshot() (quorum.Snapshot, error) {
	if m.broken != nil {
		return nil, m.broken // what could not be read must stay in the log
	}
	index, _ := m.progress()
	return &snapshot{index: index, state: m.state.Load(), recent: slices.Clone(m.recent)}, nil
}

// Restore takes the snapshot of another broker: the manifest has all of it.
func (m *machine) Restore(_ uint64, data []byte, _ quorum.Server) error {
	if data == nil {
		return errors.New("cluster: an empty manifest of the catalog")
	}
	return m.take(data)
}

type snapshot struct {
	index  uint64
	state  *catalog.State
	recent []string
}

// Persist encodes the state; whoever keeps the manifest makes it durable.
func (s *snapshot) Persist() ([]byte, error) {
	st, err := s.state.Encode()
	if err != nil {
		return nil, fmt.Errorf("cluster: encode catalog: %w", err)
	}
	return json.Marshal(manifest{Version: entryVersion, Index: s.index, Recent: s.recent, State: st})
}

// Release has nothing to let go.
func (s *snapshot) Release() {}
