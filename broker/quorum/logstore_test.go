package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wal"
)

func testLog(t *testing.T, base uint64) (*logStore, *faultfs.FS) {
	t.Helper()
	disk := faultfs.New(1)
	w, _, err := wal.Open(wal.Config{FS: disk, Dir: "/wal", FileBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	e, err := w.Entries("raft/1")
	if err != nil {
		t.Fatal(err)
	}
	g := testGroup()
	g.n.cfg.TrailingBytes = 1
	s, err := openLog(g, e, base, 1)
	if err != nil {
		t.Fatal(err)
	}
	g.log = s
	return s, disk
}

func store(t *testing.T, s *logStore, term uint64, from, to uint64) error {
	t.Helper()
	var logs []*raft.Log
	for i := from; i <= to; i++ {
		logs = append(logs, &raft.Log{Index: i, Term: term, Data: fmt.Append(nil, "entry ", i, " of ", term)})
	}
	return s.StoreLogs(logs)
}

// terms is what raft sees of a log.
func terms(t *testing.T, s *logStore) map[uint64]uint64 {
	t.Helper()
	seen := map[uint64]uint64{}
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	for i := first; i <= last && last > 0; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			t.Fatalf("entry %d of %d to %d: %v", i, first, last, err)
		}
		seen[i] = l.Term
	}
	return seen
}

func wantTerms(t *testing.T, s *logStore, want map[uint64]uint64) {
	t.Helper()
	if diff := cmp.Diff(want, terms(t, s)); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
}

func TestLogStore(t *testing.T) {
	s, _ := testLog(t, 0)
	wantTerms(t, s, map[uint64]uint64{})
	if err := store(t, s, 1, 1, 5); err != nil {
		t.Fatal(err)
	}
	var l raft.Log
	if err := s.GetLog(3, &l); err != nil || l.Data != nil {
		t.Errorf("a command came with its data %q, %v", l.Data, err)
	}
	if data, err := s.load(3, 1); err != nil || string(data) != "entry 3 of 1" {
		t.Errorf("load: %q, %v", data, err)
	}
	if _, err := s.load(3, 2); err == nil {
		t.Error("loaded an entry of another term")
	}
	if err := s.GetLog(6, &l); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry after the last: %v", err)
	}
	// A conflict: nothing is gone until what comes instead is there.
	if err := s.DeleteRange(4, 5); err != nil {
		t.Fatal(err)
	}
	wantTerms(t, s, map[uint64]uint64{1: 1, 2: 1, 3: 1, 4: 0, 5: 0})
	if s.store.Last() != 5 || !s.torn() {
		t.Errorf("the store ends at %d, torn: %v", s.store.Last(), s.torn())
	}
	if err := store(t, s, 2, 4, 4); err != nil {
		t.Fatal(err)
	}
	wantTerms(t, s, map[uint64]uint64{1: 1, 2: 1, 3: 1, 4: 2})
	if s.torn() {
		t.Error("torn after it was mended")
	}
	// Compaction ends at the snapshot, whatever raft says.
	s.snapshotAt(2, 1)
	if err := s.DeleteRange(1, 3); err != nil {
		t.Fatal(err)
	}
	wantTerms(t, s, map[uint64]uint64{3: 1, 4: 2})
	if err := s.GetLog(2, &l); err != nil || l.Term != 1 {
		t.Errorf("the snapshot's last entry: %+v, %v", l, err)
	}
	if n, _ := s.grown(); n != 2 {
		t.Errorf("grown by %d entries", n)
	}
	// A snapshot was installed in the middle: what raft believes in beyond it is buried.
	s.snapshotAt(3, 3)
	if err := s.DeleteRange(3, 4); err != nil {
		t.Fatal(err)
	}
	wantTerms(t, s, map[uint64]uint64{4: 0})
	if err := store(t, s, 3, 4, 6); err != nil {
		t.Fatal(err)
	}
	wantTerms(t, s, map[uint64]uint64{4: 3, 5: 3, 6: 3})
	if _, bytes := s.grown(); bytes != s.bytes {
		t.Errorf("%d of %d bytes are new", bytes, s.bytes)
	}
	s.close()
	if err := store(t, s, 3, 7, 7); !errors.Is(err, ErrClosed) {
		t.Errorf("store after close: %v", err)
	}
}

// TestAppendThatFails: entries that were to be replaced are neither there nor taken for others.
func TestAppendThatFails(t *testing.T) {
	s, disk := testLog(t, 0)
	if err := store(t, s, 1, 1, 5); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRange(3, 5); err != nil {
		t.Fatal(err)
	}
	disk.SetReadOnly(true)
	if err := store(t, s, 2, 3, 4); !errors.Is(err, wal.ErrReadOnly) {
		t.Fatalf("store: %v", err)
	}
	wantTerms(t, s, map[uint64]uint64{1: 1, 2: 1, 3: 0, 4: 0, 5: 0})
	disk.SetReadOnly(false)
	if err := store(t, s, 2, 3, 4); err != nil {
		t.Fatal(err)
	}
	wantTerms(t, s, map[uint64]uint64{1: 1, 2: 1, 3: 2, 4: 2})
}

// TestHolds: an install keeps the entries that follow it, until it has ended or the write-ahead log is full.
func TestHolds(t *testing.T) {
	s, _ := testLog(t, 0)
	if err := store(t, s, 1, 1, 10); err != nil {
		t.Fatal(err)
	}
	s.snapshotAt(8, 1)
	s.hold("n2.i1", 4)
	if err := s.DeleteRange(1, 8); err != nil {
		t.Fatal(err)
	}
	if first, _ := s.FirstIndex(); first != 4 {
		t.Errorf("first entry %d, want the last one of the snapshot that is installed", first)
	}
	if now := time.Now(); s.overdue(now) || !s.overdue(now.Add(holdTime+time.Second)) {
		t.Error("what the install kept is to go once it has ended, and not before")
	}
	s.press()
	if err := s.compact(8); err != nil {
		t.Fatal(err)
	}
	if first, _ := s.FirstIndex(); first != 9 {
		t.Errorf("first entry under pressure %d", first)
	}
	if s.overdue(time.Now().Add(time.Hour)) {
		t.Error("nothing is left to go")
	}
}

func TestLogWithAHole(t *testing.T) {
	s, _ := testLog(t, 9)
	if err := store(t, s, 1, 10, 12); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := openLog(s.g, s.store, 8, 1); !errors.As(err, &damaged) {
		t.Errorf("opened a log that begins after the snapshot ends: %v", err)
	}
	if _, err := openLog(s.g, s.store, 9, 1); err != nil {
		t.Error(err)
	}
}

// TestLogBehindSnapshot: a crash, or a full disk, between an installed snapshot and the
// emptying of the log leaves entries that end before it. The next ones come all the same.
func TestLogBehindSnapshot(t *testing.T) {
	s, _ := testLog(t, 0)
	if err := store(t, s, 1, 1, 5); err != nil {
		t.Fatal(err)
	}
	s.snapshotAt(50, 2)
	again, err := openLog(s.g, s.store, 50, 2) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*logStore{again, s} {
		s.g.log = s
		if err := store(t, s, 2, 51, 53); err != nil {
			t.Fatalf("entries behind the snapshot: %v", err)
		}
		wantTerms(t, s, map[uint64]uint64{51: 2, 52: 2, 53: 2})
		if s.torn() {
			t.Error("it believes in entries that are gone")
		}
		if data, err := s.load(52, 2); err != nil || string(data) != "entry 52 of 2" {
			t.Errorf("load: %q, %v", data, err)
		}
		if first, last := s.store.First(), s.store.Last(); first != 51 || last != 53 {
			t.Errorf("the store holds %d to %d", first, last)
		}
		if err := s.store.TruncateTo(54); err != nil {
			t.Fatal(err)
		}
	}
}
