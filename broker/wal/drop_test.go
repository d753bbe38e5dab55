package wal

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

// While there is too much, those who keep the oldest file are asked, and only they;
// when they have let go it is dropped, and the next is asked for.
func TestPressure(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	var l *Log
	ready := make(chan struct{})
	cfg := testConfig(faultfs.New(1))
	cfg.FileBytes, cfg.MaxBytes = 1000, 3000
	cfg.Pressure = func(keys []string) {
		<-ready
		mu.Lock()
		asked = append(asked, keys...)
		mu.Unlock()
		for _, key := range keys {
			if key[0] == 'j' {
				mustJournal(t, l, key).Release(1 << 40)
			} else if e := mustEntries(t, l, key); e.TruncateTo(e.Last()+1) != nil {
				t.Error("truncate")
			}
		}
	}
	l, _ = mustOpen(t, cfg)
	close(ready)
	for i := range 4 {
		do(t, put(mustJournal(t, l, fmt.Sprintf("j%d", i)), 0, 1, make([]byte, 600)))
		do(t, mustEntries(t, l, fmt.Sprintf("e%d", i)).Append(entryRange(5, 5, 1, 600)))
	}
	eventually(t, "there is room again", func() bool { return l.Stats().Bytes <= 3000 })
	mu.Lock()
	defer mu.Unlock()
	if len(asked) == 0 || !slices.IsSortedFunc(asked, func(a, b string) int { return int(a[1]) - int(b[1]) }) || slices.Contains(asked, "j3") {
		t.Errorf("asked: %v", asked)
	}
	if l.Stats().Dropped == 0 {
		t.Error("nothing was dropped")
	}
}

// A file stays for as long as anybody needs something in it or in an older one.
func TestFilesGoOldestFirst(t *testing.T) {
	cfg := testConfig(faultfs.New(1))
	cfg.FileBytes = 500
	l, _ := mustOpen(t, cfg)
	a, b := mustJournal(t, l, "a"), mustEntries(t, l, "b")
	do(t, put(a, 0, 1, make([]byte, 500)))
	do(t, b.Append(entryRange(1, 1, 1, 500)))
	do(t, put(a, 1, 2, make([]byte, 500)))
	do(t, b.Append(entryRange(2, 2, 1, 500)))
	if diff := cmp.Diff([]string{"a"}, l.Stats().Pinned); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	do(t, b.TruncateTo(2))
	a.Release(1)
	eventually(t, "two files are dropped", func() bool { return l.Stats().Dropped == 2 })
	if diff := cmp.Diff([]string{"a"}, l.Stats().Pinned); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	do(t, b.Forget())
	a.Forget()
	eventually(t, "all but the last are dropped", func() bool { return l.Stats().Files == 1 })
}

// A disk that refuses to drop files is tried again; nothing is lost meanwhile.
func TestDropFails(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpRename, faultfs.OpSyncDir} {
		fsys := faultfs.New(1)
		cfg := testConfig(fsys)
		cfg.FileBytes = 500
		l, _ := mustOpen(t, cfg)
		e := mustEntries(t, l, "e")
		for i := range uint64(3) {
			do(t, e.Append(entryRange(i+1, i+1, 1, 500)))
		}
		do(t, e.Append(entryRange(4, 4, 1, 100))) // the truncation does not begin a file then
		fsys.Inject(faultfs.Fault{Op: op, Times: 2, Err: syscall.EIO})
		do(t, e.TruncateTo(4))
		eventually(t, "it works in the end", func() bool { return l.Stats().Dropped >= 3 })
		again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
		if diff := cmp.Diff(entryRange(4, 4, 1, 100), all(t, mustEntries(t, again, "e"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", op, diff)
		}
	}
}

// What a journal holds can be carried to the end of the log, and is all there, before
// and after a crash.
func TestCarry(t *testing.T) {
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 500
	l, _ := mustOpen(t, cfg)
	j, e := mustJournal(t, l, "j"), mustEntries(t, l, "e")
	for i := range uint64(5) {
		do(t, put(j, i, i+1, fmt.Appendf(nil, "%500d", i)))
		do(t, e.Append(entryRange(i+1, i+1, 1, 500)))
	}
	j.Release(2)
	do(t, e.TruncateTo(5))
	want := replayed(t, j)
	for range 3 {
		do(t, j.Carry())
		eventually(t, "the old files are dropped", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return j.pins(l.files[0].pins[j]) || e.pins(l.files[0].pins[e])
		})
		again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
		got := map[piece]bool{}
		for _, p := range replayed(t, mustJournal(t, again, "j")) {
			got[p] = true
		}
		for _, p := range want {
			if !got[p] {
				t.Errorf("[%d, %d) is lost", p.From, p.Next)
			}
		}
		mustClose(t, again)
	}
	do(t, e.TruncateTo(6))
	do(t, j.Carry())
	eventually(t, "only what was carried is left", func() bool { return l.Stats().Files <= 5 })
}
