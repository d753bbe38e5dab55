package wal

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

// B82: a full disk, met by each write in turn and after any number of its bytes:
// nothing of that append is there, not after a crash either, and when there is room it
// goes on without being reopened.
func TestDiskFullAtEachWrite(t *testing.T) {
	for n := range 20 {
		for _, part := range []int{0, 1, 50, 1 << 20} {
			fsys := faultfs.New(1)
			cfg := testConfig(fsys)
			cfg.FileBytes = 700
			l, rec := mustOpen(t, cfg)
			do(t, rec.ReadOnly)
			fsys.Inject(faultfs.Fault{Op: faultfs.OpWrite, Skip: n, Times: 2, Err: syscall.ENOSPC, Bytes: part})
			e, j := mustEntries(t, l, "e"), mustJournal(t, l, "j")
			var want []Entry
			var pieces []piece
			refused := 0
			for i := uint64(1); i <= 20; {
				add := entryRange(i, i+1, 1, 40)
				if err := e.Append(add); err != nil {
					if !errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) || l.Err() != nil {
						t.Fatalf("write %d: %v; %v", n, err, l.Err())
					}
					refused++
					if diff := cmp.Diff(want, all(t, e)); diff != "" {
						t.Fatalf("write %d, refused (-want +got):\n%s", n, diff)
					}
					if part < 1<<20 {
						again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Keep, 1)))
						if diff := cmp.Diff(want, all(t, mustEntries(t, again, "e"))); diff != "" {
							t.Fatalf("write %d, %d bytes, refused and opened again (-want +got):\n%s", n, part, diff)
						}
						mustClose(t, again)
					}
					continue
				}
				want = append(want, add...)
				i += 2
				p := piece{i, i + 1, fmt.Sprint(i)}
				if err := put(j, p.From, p.Next, []byte(p.Data)); err != nil {
					do(t, mustBe(ErrDiskFull, err))
					refused++
				} else {
					pieces = append(pieces, p)
				}
			}
			if refused == 0 {
				t.Fatalf("write %d: nothing was refused", n)
			}
			again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
			if diff := cmp.Diff(want, all(t, mustEntries(t, again, "e"))); diff != "" {
				t.Fatalf("write %d (-want +got):\n%s", n, diff)
			}
			if diff := cmp.Diff(pieces, replayed(t, mustJournal(t, again, "j"))); part < 1<<20 && diff != "" {
				t.Fatalf("write %d (-want +got):\n%s", n, diff)
			}
			mustClose(t, again)
			mustClose(t, l)
		}
	}
}

// An append that a full disk refused when half of it was written, in a batch of its
// own, leaves nothing that a later one could not follow.
func TestDiskFullBetweenTheBatchesOfAnAppend(t *testing.T) {
	for _, follow := range []uint64{1, 40, 3} {
		fsys := faultfs.New(1)
		l, _ := mustOpen(t, testConfig(fsys))
		e := mustEntries(t, l, "e")
		fsys.Inject(faultfs.Fault{Op: faultfs.OpWrite, Skip: 1, Times: 1, Err: syscall.ENOSPC})
		do(t, mustBe(ErrDiskFull, e.Append(entryRange(1, 20, 1, 300))))
		if e.First() != 0 || e.Last() != 0 {
			t.Fatalf("%d to %d are held", e.First(), e.Last())
		}
		want := entryRange(follow, follow+20, 2, 300)
		do(t, e.Append(want))
		again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
		if diff := cmp.Diff(want, all(t, mustEntries(t, again, "e"))); diff != "" {
			t.Fatalf("from %d (-want +got):\n%s", follow, diff)
		}
	}
}

// The first flush that fails poisons: everybody who waits is told, nothing is taken
// any more, and what was acknowledged before is there when the log is opened again.
func TestFailedFlushPoisons(t *testing.T) {
	fsys := faultfs.New(1)
	l, _ := mustOpen(t, testConfig(fsys))
	e, j := mustEntries(t, l, "e"), mustJournal(t, l, "j")
	do(t, e.Append(entryRange(1, 3, 1, 10)))
	do(t, put(j, 0, 1, []byte("kept")))
	fsys.Inject(faultfs.Fault{Op: faultfs.OpDatasync})
	do(t, mustBe(ErrPoisoned, put(j, 1, 2, []byte("lost"))))
	do(t, mustBe(ErrPoisoned, e.Append(entryRange(4, 4, 1, 10))))
	do(t, mustBe(ErrPoisoned, e.TruncateTo(2)))
	do(t, mustBe(ErrPoisoned, l.Err()))
	if j.Append(2, 3, []byte("x"), func(_, _ uint64, _ error) {}) {
		t.Error("a poisoned log takes an append")
	}
	if diff := cmp.Diff(entryRange(1, 3, 1, 10), all(t, e)); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if err := l.Close(); !errors.Is(err, ErrPoisoned) {
		t.Errorf("close: %v", err)
	}

	// The process goes on: what the failed flush left in memory only is on the disk
	// before anybody relies on it.
	again, rec := mustOpen(t, testConfig(fsys))
	do(t, rec.ReadOnly)
	have := replayed(t, mustJournal(t, again, "j"))
	after, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
	if diff := cmp.Diff(have, replayed(t, mustJournal(t, after, "j"))); diff != "" {
		t.Errorf("read after the failed flush, gone after the power cut (-read +left):\n%s", diff)
	}
	if diff := cmp.Diff(entryRange(1, 3, 1, 10), all(t, mustEntries(t, after, "e"))); diff != "" {
		t.Errorf("acknowledged (-want +got):\n%s", diff)
	}
}

// Each operation fails once with each error: nothing acknowledged is lost, and
// unless the log was poisoned it goes on.
func TestAnyOperationFails(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpOpen, faultfs.OpWrite, faultfs.OpDatasync, faultfs.OpRename, faultfs.OpRemove, faultfs.OpSyncDir} {
		for _, with := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
			for skip := range 12 {
				name := fmt.Sprintf("%s %d: %v", op, skip, with)
				fsys := faultfs.New(1)
				cfg := testConfig(fsys)
				cfg.FileBytes = 600
				fsys.Inject(faultfs.Fault{Op: op, Skip: skip, Err: with})
				l, _, err := Open(cfg)
				if err != nil {
					t.Fatalf("%s: open: %v", name, err)
				}
				e := mustEntries(t, l, "e")
				var want []Entry
				first := uint64(1)
				for i := uint64(1); i <= 30; i++ {
					add := entryRange(i, i, 1, 90)
					err := e.Append(add)
					if err != nil && !errors.Is(err, ErrPoisoned) {
						err = e.Append(add)
					}
					if err != nil {
						do(t, mustBe(ErrPoisoned, err))
						if !errors.Is(with, syscall.EIO) && op != faultfs.OpDatasync {
							t.Fatalf("%s: %v", name, err)
						}
						break
					}
					want = append(want, add...)
					if i%7 == 0 {
						if err := e.TruncateTo(i - 2); err == nil || e.TruncateTo(i-2) == nil {
							want = want[i-2-first:]
							first = i - 2
						}
					}
				}
				again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
				got := all(t, mustEntries(t, again, "e"))
				if len(got) > len(want) {
					got = got[:len(want)] // the outcome of the last one is unknown
				}
				if len(want) == 0 {
					want = nil
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", name, diff)
				}
				_ = l.Close()
				mustClose(t, again)
			}
		}
	}
}

// B93: a file system that is read-only when the log is opened, with files and without,
// and later is not.
func TestOpenOnReadOnlyDisk(t *testing.T) {
	for _, with := range []bool{false, true} {
		fsys := faultfs.New(1)
		var want []Entry
		if with {
			l, _ := mustOpen(t, testConfig(fsys))
			want = entryRange(1, 3, 1, 10)
			do(t, mustEntries(t, l, "e").Append(want))
			mustClose(t, l)
		}
		fsys.SetReadOnly(true)
		l, rec := mustOpen(t, testConfig(fsys))
		do(t, mustBe(ErrReadOnly, rec.ReadOnly))
		e := mustEntries(t, l, "e")
		if diff := cmp.Diff(want, all(t, e)); diff != "" {
			t.Fatalf("files %v (-want +got):\n%s", with, diff)
		}
		next := entryRange(e.Last()+1, e.Last()+2, 2, 10)
		for range 2 {
			do(t, mustBe(ErrReadOnly, e.Append(next)))
		}
		fsys.SetReadOnly(false)
		do(t, e.Append(next))
		if diff := cmp.Diff(append(want, next...), all(t, e)); diff != "" {
			t.Fatalf("files %v (-want +got):\n%s", with, diff)
		}
		mustClose(t, l)
	}
}

// A disk that really fills up refuses, and goes on when there is room.
func TestDiskFillsUp(t *testing.T) {
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 128 << 10
	l, _ := mustOpen(t, cfg)
	fsys.SetSpace(150 << 10)
	e := mustEntries(t, l, "e")
	var err error
	for err == nil {
		err = e.Append(entryRange(e.Last()+1, e.Last()+3, 1, 500))
	}
	do(t, mustBe(ErrDiskFull, err))
	if e.Last() < 150 {
		t.Errorf("full at entry %d", e.Last())
	}
	do(t, mustBe(ErrDiskFull, e.Append(entryRange(e.Last()+1, e.Last()+3, 1, 500))))
	last := e.Last()
	fsys.SetSpace(-1)
	do(t, e.Append(entryRange(last+1, last+3, 1, 500)))
	again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
	if diff := cmp.Diff(all(t, e), all(t, mustEntries(t, again, "e"))); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}
