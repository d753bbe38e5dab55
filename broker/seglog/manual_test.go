package seglog

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/vfs/faultfs"
)

func (d *disk) manual() Config {
	cfg := d.config()
	cfg.Fsync, cfg.SegmentBytes = FsyncManual, 1<<10
	return cfg
}

// Nothing is flushed but on demand and at the end of a segment, and everything is
// committed when it is written.
func TestManualFlushesOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		cfg := d.manual()
		cfg.Committed, cfg.SegmentBytes = c.report, 1<<20
		l, _, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		before := d.fs.Counts().Of(faultfs.OpDatasync)
		fillLog(t, l, c, 20, 100)
		time.Sleep(time.Hour)
		if n := d.fs.Counts().Of(faultfs.OpDatasync) - before; n != 0 || l.Durable() != 0 {
			t.Errorf("%d flushes, durable to %d", n, l.Durable())
		}
		for range 2 {
			if err := l.Sync(); err != nil || l.Durable() != 20 {
				t.Errorf("durable to %d, %v", l.Durable(), err)
			}
		}
		if n := d.fs.Counts().Of(faultfs.OpDatasync) - before; n != 1 {
			t.Errorf("%d flushes", n)
		}
		reopened, rec := mustOpen(t, d.crash(faultfs.Drop, 1).manual())
		if rec.Next != 20 {
			t.Errorf("recovery: %+v", rec)
		}
		mustClose(t, reopened)
		mustClose(t, l)
		if err := l.Sync(); !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

// A failed flush on demand is told to who asked, and poisons.
func TestManualFailedFlush(t *testing.T) {
	d := newDisk(t)
	l, _ := mustOpen(t, d.manual())
	mustAppend(t, l, batch(0, 1, 10))
	d.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync})
	for range 2 {
		if err := l.Sync(); !errors.Is(err, ErrPoisoned) {
			t.Errorf("sync: %v", err)
		}
	}
	if err := l.Append([]Record{batch(1, 1, 10)}); !errors.Is(err, ErrPoisoned) {
		t.Errorf("append: %v", err)
	}
}

func TestTrimTo(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.manual()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 60, 100)
	bases := d.bases(segmentSuffix)
	if len(bases) < 5 {
		t.Fatalf("segments %v", bases)
	}
	for _, step := range []struct {
		to      uint64
		oldest  uint64
		removed int
		first   uint64 // segment that is left
	}{
		{0, 0, 0, 0},
		{bases[1] - 1, bases[1] - 1, 0, 0},
		{3, bases[1] - 1, 0, 0},
		{bases[1], bases[1], 1, bases[1]},
		{bases[3] + 1, bases[3] + 1, 2, bases[3]},
		{1000, 60, len(bases) - 4, bases[len(bases)-1]},
	} {
		removed, err := l.TrimTo(step.to)
		if err != nil || removed != step.removed || l.Oldest() != step.oldest {
			t.Fatalf("trim to %d: %d removed, oldest %d, %v; want %d and %d", step.to, removed, l.Oldest(), err, step.removed, step.oldest)
		}
		if got := d.bases(segmentSuffix); got[0] != step.first {
			t.Fatalf("trim to %d: segments %v", step.to, got)
		}
		if step.oldest > 0 {
			_, err := l.Read(step.oldest-1, 60, 1000, nil)
			if old, ok := errors.AsType[*TooOldError](err); !ok || old.Oldest != step.oldest {
				t.Fatalf("trim to %d: read below: %v", step.to, err)
			}
		}
		checkDense(t, l, step.oldest, 60)
	}
	mustClose(t, l)
	l, _ = mustOpen(t, d.manual())
	if last := bases[len(bases)-1]; l.Oldest() != last {
		t.Errorf("opened again: oldest %d, want %d", l.Oldest(), last)
	}
	always, _ := mustOpen(t, newDisk(t).config())
	if _, err := always.TrimTo(1); err == nil {
		t.Error("a log with retention of its own is told what to remove")
	}
	if err := always.Reset(1); err == nil {
		t.Error("a log with retention of its own is reset")
	}
}

// A log that is reset goes on at its new base, forwards and backwards, and readers of
// what it held are told.
func TestReset(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.manual()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 40, 100)
	reader := l.NewCursor(5)
	if _, err := reader.Read(40, 100, nil); err != nil {
		t.Fatal(err)
	}
	for _, base := range []uint64{100, 7, 7} {
		if err := l.Reset(base); err != nil {
			t.Fatal(err)
		}
		if l.Next() != base || l.Oldest() != base || l.Durable() != base {
			t.Fatalf("reset to %d: %d to %d, durable to %d", base, l.Oldest(), l.Next(), l.Durable())
		}
		if got := d.bases(segmentSuffix); len(got) != 1 || got[0] != base {
			t.Fatalf("segments %v", got)
		}
		for i := range uint64(30) {
			mustAppend(t, l, batch(base+i, 1, 100))
		}
		checkDense(t, l, base, base+30)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		reopened, rec := mustOpen(t, d.crash(faultfs.Drop, base).manual())
		if rec.Oldest != base || rec.Next != base+30 || rec.Corruption != nil {
			t.Fatalf("recovery: %+v", rec)
		}
		mustClose(t, reopened)
		_, err := reader.Read(l.Next(), 100, nil)
		if _, ok := errors.AsType[*TooOldError](err); base > 7 && !ok {
			t.Fatalf("reader: %v", err)
		}
	}
	mustClose(t, l)
	if n := d.fs.OpenFiles(); n != 0 {
		t.Errorf("%d files stay open", n)
	}
}

// Power is lost, or the disk fails, at any operation of a reset: the log opens with a
// earliest part of what it held or with nothing, and can be reset again.
func TestResetInterrupted(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpRemove, faultfs.OpSyncDir, faultfs.OpOpen, faultfs.OpWrite, faultfs.OpDatasync, faultfs.OpRename} {
		for skip := range 8 {
			for _, with := range []error{syscall.ENOSPC, syscall.EIO} {
				name := fmt.Sprintf("%s %d: %v", op, skip, with)
				d := newDisk(t)
				c := newCommits()
				cfg := d.manual()
				cfg.Committed = c.report
				l, _ := mustOpen(t, cfg)
				fillLog(t, l, c, 40, 100)
				if err := l.Sync(); err != nil {
					t.Fatal(err)
				}
				mustClose(t, l)
				l, _ = mustOpen(t, d.manual())
				d.fs.Inject(faultfs.Fault{Op: op, Skip: skip, Err: with})
				err := l.Reset(500)
				for seed := range uint64(3) {
					reopened, rec := mustOpen(t, d.crash(faultfs.Random, seed).manual())
					if rec.Corruption != nil || rec.Next > 40 && rec.Next != 500 || rec.Oldest != 0 && rec.Oldest != 500 {
						t.Fatalf("%s: power lost: %+v", name, rec)
					}
					checkDense(t, reopened, reopened.Oldest(), reopened.Next())
					if err := reopened.Reset(500); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					mustAppend(t, reopened, batch(500, 1, 10))
					checkDense(t, reopened, 500, 501)
					mustClose(t, reopened)
				}
				if err != nil && !errors.Is(err, ErrPoisoned) {
					if err := l.Reset(500); err != nil && !errors.Is(err, ErrPoisoned) {
						t.Fatalf("%s: again: %v", name, err)
					}
				}
				d.fs.Heal()
				if l.Err() == nil {
					if l.Next() != 500 { // the fault met something before the reset
						t.Fatalf("%s: next %d, %v", name, l.Next(), err)
					}
					mustAppend(t, l, batch(500, 1, 10))
					checkDense(t, l, 500, 501)
				}
				_ = l.Close()
			}
		}
	}
}
