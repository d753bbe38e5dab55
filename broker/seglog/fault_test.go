package seglog

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
)

// A full disk, met by each write in turn and after any number of its bytes: nothing
// of that append is there, readers go on, and when there is room it goes on without
// being reopened.
func TestDiskFullAtEachWrite(t *testing.T) {
	for n := range 30 {
		for _, part := range []int{0, 1, 50, 200, 1 << 20} {
			d := newDisk(t)
			c := newCommits()
			cfg := d.config()
			cfg.Committed, cfg.SegmentBytes = c.report, 1<<10
			l, _ := mustOpen(t, cfg)
			noIndex := func(name string) bool { return !strings.Contains(name, indexSuffix) } // those are written in the background
			d.fs.Inject(faultfs.Fault{Op: faultfs.OpWrite, Name: noIndex, Skip: n, Times: 2, Err: syscall.ENOSPC, Bytes: part})
			refused := 0
			for l.Next() < 80 {
				next := l.Next()
				err := l.Append([]Record{batch(next, 1, 60), batch(next+1, 1, 60)})
				if err == nil {
					continue
				}
				if !errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("write %d: %v", n, err)
				}
				refused++
				if l.Next() != next || l.Err() != nil {
					t.Fatalf("write %d: next is %d, was %d; %v", n, l.Next(), next, l.Err())
				}
				checkDense(t, l, 0, next)
				if part > 0 && part < 1<<20 {
					// What the failed write left must not come back to life.
					if err := c.wait(next); err != nil {
						t.Fatal(err)
					}
					image := d.copy()
					reopened, rec := mustOpen(t, image.config())
					if rec.Next != next || rec.ReadOnly != nil {
						t.Fatalf("write %d, %d bytes: refused at %d: %+v", n, part, next, rec)
					}
					mustClose(t, reopened)
				}
			}
			if err := c.wait(80); err != nil {
				t.Fatal(err)
			}
			if refused == 0 {
				t.Fatalf("write %d: nothing was refused", n)
			}
			checkDense(t, l, 0, 80)
			mustClose(t, l)
			reopened, rec := mustOpen(t, d.crash(faultfs.Drop, 1).config())
			if rec.Next != 80 || rec.Cut != nil {
				t.Fatalf("write %d: %+v", n, rec)
			}
			checkDense(t, reopened, 0, 80)
			mustClose(t, reopened)
		}
	}
}

// The disk really fills up, with segments that are filled ahead, rolled and trimmed.
func TestDiskFillsUp(t *testing.T) {
	for _, prefill := range []bool{false, true} {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.Committed, cfg.Prefill, cfg.prefill = c.report, prefill, testPrefill
		l, _ := mustOpen(t, cfg)
		d.fs.SetSpace(30 << 10)
		var err error
		for err == nil {
			err = l.Append([]Record{batch(l.Next(), 1, 100)})
		}
		next := l.Next()
		if !errors.Is(err, ErrDiskFull) || next == 0 {
			t.Fatalf("at %d: %v", next, err)
		}
		for range 20 {
			if err := l.Append([]Record{batch(next, 1, 5000)}); !errors.Is(err, ErrDiskFull) {
				t.Fatalf("still full: %v", err)
			}
		}
		if err := c.wait(next); err != nil {
			t.Fatal(err)
		}
		checkDense(t, l, 0, next)
		d.fs.SetSpace(-1)
		mustAppend(t, l, batch(next, 1, 100))
		if err := c.wait(next + 1); err != nil {
			t.Fatal(err)
		}
		mustClose(t, l)
		reopened, rec := mustOpen(t, d.crash(faultfs.Drop, 1).config())
		if rec.Next != next+1 || rec.Cut != nil {
			t.Fatalf("recovery: %+v", rec)
		}
		checkDense(t, reopened, 0, next+1)
	}
}

// B93: a file system that turns read-only and back, under a log that is open.
func TestReadOnlyAndBack(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed, cfg.SegmentBytes = c.report, 1<<10
	l, _ := mustOpen(t, cfg)
	for round := range 12 { // so that it also happens when a segment must be begun
		fillLog(t, l, c, l.Next()+1+uint64(round%3), 100)
		next := l.Next()
		d.fs.SetReadOnly(true)
		for range 3 {
			if err := l.Append([]Record{batch(next, 1, 100)}); !errors.Is(err, ErrReadOnly) || !errors.Is(err, syscall.EROFS) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if l.Next() != next || l.Err() != nil {
			t.Fatalf("next %d, %v", l.Next(), l.Err())
		}
		checkDense(t, l, 0, next)
		d.fs.SetReadOnly(false)
	}
	fillLog(t, l, c, l.Next()+5, 100)
	checkDense(t, l, 0, l.Next())
}

// B93: the same when it is found at Open: offsets never begin anew.
func TestOpenOnReadOnlyDisk(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	at := fillLog(t, l, c, 10, 100)
	image := d.copy()
	path := image.path(0, segmentSuffix)
	image.write(path, image.read(path)[:at[9]+20]) // with a torn tail, so that there is something to repair
	image.fs.SetReadOnly(true)
	c = newCommits()
	c.next = 9
	cfg = image.config()
	cfg.Committed = c.report
	l, rec := mustOpen(t, cfg)
	if rec.Next != 9 || !errors.Is(rec.ReadOnly, ErrReadOnly) || rec.Cut == nil {
		t.Fatalf("recovery: %+v", rec)
	}
	if l.Durable() > l.Next() {
		t.Fatalf("durable %d of %d", l.Durable(), l.Next())
	}
	checkDense(t, l, 0, 9)
	for range 2 {
		if err := l.Append([]Record{batch(9, 1, 10)}); !errors.Is(err, ErrReadOnly) {
			t.Fatalf("append: %v", err)
		}
	}
	image.fs.SetReadOnly(false)
	fillLog(t, l, c, 20, 100)
	checkDense(t, l, 0, 20)
	mustClose(t, l)

	// A directory that can't even be made.
	empty := newDisk(t)
	empty.fs.SetReadOnly(true)
	c = newCommits()
	cfg = empty.config()
	cfg.Committed, cfg.First = c.report, 77
	l, rec = mustOpen(t, cfg)
	if rec.Next != 77 || !errors.Is(rec.ReadOnly, ErrReadOnly) {
		t.Fatalf("recovery: %+v", rec)
	}
	if err := l.Append([]Record{batch(77, 1, 10)}); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("append: %v", err)
	}
	if p, err := l.Read(77, 77, 100, nil); err != nil || p.Next != 77 {
		t.Fatalf("read: %+v, %v", p, err)
	}
	empty.fs.SetReadOnly(false)
	mustAppend(t, l, batch(77, 1, 10))
	if err := c.wait(78); err != nil {
		t.Fatal(err)
	}
	checkDense(t, l, 77, 78)
	mustClose(t, l)
}

// Each operation of Open, append, roll and trim fails once with each error: no
// failure makes the log forget or invent anything.
func TestAnyOperationFails(t *testing.T) {
	ops := []faultfs.Op{
		faultfs.OpOpen, faultfs.OpWrite, faultfs.OpTruncate, faultfs.OpRename,
		faultfs.OpRemove, faultfs.OpMkdir, faultfs.OpReadDir, faultfs.OpStat, faultfs.OpSyncDir, faultfs.OpDatasync,
	}
	for _, op := range ops {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
			t.Run(op.String()+"/"+errno.Error(), func(t *testing.T) {
				for n := range 10 {
					failAt(t, op, errno, n)
				}
			})
		}
	}
}

func failAt(t *testing.T, op faultfs.Op, errno syscall.Errno, n int) {
	t.Helper()
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed, cfg.SegmentBytes, cfg.MaxBytes = c.report, 1<<10, 8<<10
	cfg.RestoreState, cfg.SnapshotState = func([]byte) error { return nil }, func() []byte { return []byte("s") }
	d.fs.Inject(faultfs.Fault{Op: op, Skip: n, Err: errno})
	acked := uint64(0)
	for range 2 {
		l, rec, err := Open(cfg)
		if err != nil {
			if !errors.Is(err, errno) {
				t.Fatalf("%d: open: %v", n, err)
			}
			continue // the fault is used up
		}
		if rec.Next < acked {
			t.Fatalf("%d: %d acked: %+v", n, acked, rec)
		}
		c.mu.Lock()
		c.next, c.err, c.errs, c.wrong = rec.Next, nil, 0, nil
		c.mu.Unlock()
		for range 30 {
			next := l.Next()
			err := l.Append([]Record{batch(next, 1, 60)})
			if err == nil {
				err = c.wait(next + 1)
			}
			if errors.Is(err, ErrPoisoned) {
				break
			}
			if err != nil && !errors.Is(err, errno) {
				t.Fatalf("%d: append: %v", n, err)
			}
		}
		acked = c.committed()
		for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Random} {
			image := d.crash(policy, uint64(n))
			cfg := image.config()
			cfg.RestoreState = func([]byte) error { return nil }
			reopened, rec := mustOpen(t, cfg)
			if rec.ReadOnly != nil || rec.Next < acked {
				t.Fatalf("%d: acked %d, after a power cut: %+v", n, acked, rec)
			}
			checkDense(t, reopened, rec.Oldest, rec.Next)
			mustClose(t, reopened)
		}
		if _, err := l.Trim(); err != nil && !errors.Is(err, errno) { // or the keeper does while we read
			t.Fatalf("%d: trim: %v", n, err)
		}
		if _, err := l.Read(l.Oldest(), acked, 100, nil); err != nil && !errors.Is(err, errno) { // it may open a file
			t.Fatalf("%d: read: %v", n, err)
		}
		checkDense(t, l, l.Oldest(), acked)
		if err := l.Close(); err != nil && !errors.Is(err, ErrPoisoned) {
			t.Fatalf("%d: close: %v", n, err)
		}
	}
	if n := d.fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
	d.fs.Heal()
	entries, err := d.fs.ReadDir(diskDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Fatalf("%s was left behind", e.Name())
		}
	}
}
