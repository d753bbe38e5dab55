package quorum

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// world knows all machines of a test, and that they all apply the same.
type world struct {
	t        testing.TB
	mu       sync.Mutex
	at       map[uint64][]byte
	machines map[Server]*machine
}

func newWorld(t testing.TB) *world {
	return &world{t: t, at: map[uint64][]byte{}, machines: map[Server]*machine{}}
}

func (w *world) machine(s Server) *machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &machine{w: w, self: s, closed: make(chan struct{})}
	w.machines[s] = m
	return m
}

// applied checks an entry against what others have applied there.
func (w *world) applied(index uint64, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.at[index]; ok && !bytes.Equal(before, data) {
		w.t.Errorf("entry %d is %q here and %q elsewhere", index, data, before)
	}
	w.at[index] = bytes.Clone(data)
}

// entry is what a machine remembers of one.
type entry struct {
	Index uint64
	Text  string
}

// machine remembers the entries. Its manifest says how many; the rest is fetched.
type machine struct {
	w      *world
	self   Server
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	entries  []entry
	leading  bool
	changes  []Leadership
	restores int
	fetched  int
	onApply  func(index uint64)      // may block
	onFetch  func(entries int) error // before each is taken
	forget   bool                    // what is applied: for benchmarks
}

type manifest struct {
	Index   uint64
	Entries []entry // what its own storage would hold
}

func (m *machine) Recover(b []byte) error {
	if b == nil {
		return nil
	}
	var f manifest
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = f.Entries
	return nil
}

func (m *machine) Apply(index, _ uint64, data []byte) any {
	m.mu.Lock()
	hook := m.onApply
	m.mu.Unlock()
	if hook != nil {
		hook(index)
	}
	if m.forget {
		return nil
	}
	m.w.applied(index, data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.entries); n > 0 && m.entries[n-1].Index >= index {
		m.w.t.Errorf("%s: entry %d after %d", m.self, index, m.entries[n-1].Index)
	}
	m.entries = append(m.entries, entry{Index: index, Text: string(data)})
	return len(m.entries)
}

func (m *machine) Snapshot() (Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return frozenEntries(slices.Clone(m.entries)), nil
}

type frozenEntries []entry

func (f frozenEntries) Persist() ([]byte, error) {
	return json.Marshal(manifest{Entries: f})
}
func (frozenEntries) Release() {}

var errInterrupted = errors.New("interrupted")

func (m *machine) Restore(index uint64, b []byte, from Server) error {
	var f manifest
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	m.mu.Lock()
	m.restores++
	hook := m.onFetch
	have := m.entries
	m.mu.Unlock()
	if m.w.machines[from] == nil {
		return fmt.Errorf("no machine of %s", from)
	}
	// What it has of a prefix it keeps; it has no entries that are not committed.
	for i := len(have); i < len(f.Entries); i++ {
		if hook != nil {
			if err := hook(i); err != nil {
				return err
			}
		}
		select {
		case <-m.closed:
			return errInterrupted
		default:
		}
		m.w.applied(f.Entries[i].Index, []byte(f.Entries[i].Text))
		m.mu.Lock()
		m.fetched++
		m.entries = append(m.entries, f.Entries[i])
		m.mu.Unlock()
	}
	return nil
}

func (m *machine) Interrupt() { m.once.Do(func() { close(m.closed) }) }

func (m *machine) led(l Leadership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.Leading == m.leading {
		m.w.t.Errorf("%s: told %+v twice", m.self, l)
	}
	m.leading = l.Leading
	m.changes = append(m.changes, l)
}

func (m *machine) state() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) == 0 {
		return "empty"
	}
	return fmt.Sprintf("%d entries, last %v", len(m.entries), m.entries[len(m.entries)-1])
}

func (m *machine) texts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]int{}
	for _, e := range m.entries {
		all[e.Text]++
	}
	return all
}

func (m *machine) count() (entries, restores, fetched int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries), m.restores, m.fetched
}
