package wal

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"felix.dev/felix/broker/vfs/faultfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDir = "/data/wal"

func testConfig(fsys *faultfs.FS) Config {
	return Config{FS: fsys, Dir: testDir, FileBytes: 4 << 10, MaxBytes: 1 << 30, BatchBytes: 2 << 10, Alone: -1}
}

func mustOpen(t testing.TB, cfg Config) (*Log, Recovery) {
	t.Helper()
	l, rec, err := Open(cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() }) // what a test must know of Close it checks itself
	return l, rec
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustJournal(t testing.TB, l *Log, key string) *Journal {
	t.Helper()
	j, err := l.Journal(key)
	do(t, err)
	return j
}

func mustEntries(t testing.TB, l *Log, key string) *Entries {
	t.Helper()
	e, err := l.Entries(key)
	do(t, err)
	return e
}

// put appends to a journal and waits.
func put(j *Journal, from, next uint64, data []byte) error {
	done := make(chan error, 1)
	if !j.Append(from, next, data, func(_, _ uint64, err error) { done <- err }) {
		return fmt.Errorf("declined: %w", j.l.Err())
	}
	return <-done
}

func entry(index, term uint64, size int) Entry {
	e := Entry{Index: index, Term: term, Type: uint8(index % 3)}
	if size > 0 {
		e.Data = bytes.Repeat([]byte{byte('a' + index%26)}, size)
	}
	if index%2 == 0 {
		e.Ext = fmt.Appendf(nil, "ext %d", index)
		e.AppendedAt = time.Unix(1_700_000_000, int64(index)).UTC()
	}
	return e
}

func entryRange(from, to, term uint64, size int) (out []Entry) {
	for i := from; i <= to; i++ {
		out = append(out, entry(i, term, size))
	}
	return out
}

// all reads everything that a store holds.
func all(t testing.TB, e *Entries) (out []Entry) {
	t.Helper()
	first, last := e.First(), e.Last()
	if first == 0 {
		return nil
	}
	for i := first; i <= last; i++ {
		got, err := e.Get(i)
		if err != nil {
			t.Fatalf("get %d of %d to %d: %v", i, first, last, err)
		}
		out = append(out, got)
	}
	return out
}

type piece struct {
	From, Next uint64
	Data       string
}

func replayed(t testing.TB, j *Journal) (out []piece) {
	t.Helper()
	do(t, j.Replay(func(from, next uint64, data []byte) error {
		out = append(out, piece{from, next, string(data)})
		return nil
	}))
	return out
}

// acks collects what a journal reports.
type acks struct {
	mu   sync.Mutex
	cond *sync.Cond
	next []uint64
	errs []error
}

func newAcks() *acks {
	a := &acks{}
	a.cond = sync.NewCond(&a.mu)
	return a
}

func (a *acks) done(_, next uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = append(a.next, next)
	a.errs = append(a.errs, err)
	a.cond.Broadcast()
}

func (a *acks) wait(n int) ([]uint64, []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.next) < n {
		a.cond.Wait()
	}
	return slices.Clone(a.next), slices.Clone(a.errs)
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
