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

// One flush serves everything that was written before it began, and writes go on
// while it runs.
func TestGroupCommit(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.SegmentBytes, cfg.Committed = 1<<20, c.report
	l, _ := mustOpen(t, cfg)
	before := d.fs.Counts().Of(faultfs.OpDatasync)
	entered, release := d.fs.Hold(faultfs.OpDatasync, nil)
	mustAppend(t, l, batch(0, 1, 10))
	<-entered
	for i := uint64(1); i < 100; i++ {
		mustAppend(t, l, batch(i, 1, 10))
	}
	if got := c.committed(); got != 0 {
		t.Fatalf("committed %d before the flush is done", got)
	}
	checkDense(t, l, 0, 100) // what is written can be read; who must not see it gives a limit
	if l.Durable() != 0 {
		t.Fatalf("durable %d", l.Durable())
	}
	release()
	if err := c.wait(100); err != nil {
		t.Fatal(err)
	}
	if got := d.fs.Counts().Of(faultfs.OpDatasync) - before; got != 2 {
		t.Errorf("%d flushes, want 2", got)
	}
	if c.calls != 2 {
		t.Errorf("%d reports, want 2", c.calls)
	}
	if st := l.Stats(); st.Syncs != 2 || st.Durable != 100 || st.Appends != 100 || st.AppendedBytes == 0 {
		t.Errorf("stats %+v", st)
	}
}

// A flush that hangs holds up nobody who reads, nor retention, nor statistics.
func TestHangingFlushBlocksNoReader(t *testing.T) {
	for _, mode := range []Fsync{FsyncAlways, FsyncInterval} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t)
			c := newCommits()
			cfg := d.config()
			cfg.Committed, cfg.Fsync, cfg.MaxBytes = c.report, mode, 1<<30
			cfg.SegmentBytes = 4 << 10
			l, _ := mustOpen(t, cfg)
			fill := uint64(0)
			for ; len(*l.segs.Load()) < 4; fill++ {
				mustAppend(t, l, batch(fill, 1, 100))
			}
			if err := c.wait(fill); err != nil {
				t.Fatal(err)
			}
			_, release := d.fs.Hold(faultfs.OpDatasync, nil)
			mustAppend(t, l, batch(fill, 1, 10))
			synctest.Wait()
			time.Sleep(2 * defaultFsyncEvery) // in interval mode the flush begins in here
			synctest.Wait()
			full := make(chan error, 1)
			go func() { // an append that needs the next segment waits for the flush
				for {
					segs := len(*l.segs.Load())
					if err := l.Append([]Record{batch(l.Next(), 1, 100)}); err != nil || len(*l.segs.Load()) > segs {
						full <- err
						return
					}
				}
			}()
			synctest.Wait()
			checkDense(t, l, 0, fill+1)
			if st := l.Stats(); st.Next < fill || st.Durable > fill {
				t.Errorf("stats %+v", st)
			}
			if _, err := l.Trim(); err != nil {
				t.Error(err)
			}
			if mode == FsyncInterval {
				if err := c.wait(fill + 1); err != nil { // committed as soon as it is written
					t.Error(err)
				}
			}
			release()
			if err := <-full; err != nil {
				t.Error(err)
			}
			mustClose(t, l)
		})
	}
}

// In interval mode commits follow writes at once, flushes after the interval.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.Committed, cfg.Fsync, cfg.FsyncEvery = c.report, FsyncInterval, 100*time.Millisecond
		l, _ := mustOpen(t, cfg)
		before := d.fs.Counts().Of(faultfs.OpDatasync)
		flushes := func() int { synctest.Wait(); return d.fs.Counts().Of(faultfs.OpDatasync) - before }
		for i := range uint64(5) {
			mustAppend(t, l, batch(i, 1, 10))
			if err := c.wait(i + 1); err != nil {
				t.Fatal(err)
			}
		}
		if got := flushes(); got != 0 {
			t.Errorf("%d flushes before the interval is over", got)
		}
		time.Sleep(101 * time.Millisecond)
		if got := flushes(); got != 1 || l.Durable() != 5 {
			t.Errorf("%d flushes after it, durable %d", got, l.Durable())
		}
		time.Sleep(time.Hour)
		if got := flushes(); got != 1 {
			t.Errorf("%d flushes of an idle log", got)
		}
		mustAppend(t, l, batch(5, 1, 10))
		mustClose(t, l)
		_, rec := mustOpen(t, d.crash(faultfs.Drop, 1).config())
		if rec.Next != 6 || rec.Cut != nil {
			t.Errorf("after close and power cut: %+v", rec)
		}
	})
}

// In interval mode a failed flush ends the log as well, and is told once.
func TestIntervalPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.Committed, cfg.Fsync = c.report, FsyncInterval
		l, _ := mustOpen(t, cfg)
		d.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync})
		mustAppend(t, l, batch(0, 1, 10))
		time.Sleep(defaultFsyncEvery + time.Millisecond)
		synctest.Wait()
		if err := c.wait(2); !errors.Is(err, ErrPoisoned) {
			t.Errorf("after the failed flush: %v", err)
		}
		if err := l.Append([]Record{batch(1, 1, 10)}); !errors.Is(err, ErrPoisoned) {
			t.Errorf("append: %v", err)
		}
		if err := l.Close(); !errors.Is(err, ErrPoisoned) {
			t.Errorf("close: %v", err)
		}
		if c.errs != 1 || c.wrong != nil {
			t.Errorf("told %d times, %v", c.errs, c.wrong)
		}
	})
}

// B56: logs that nobody appends to never flush, however long they are open, and
// opening and closing them again doesn't either.
func TestIdleLogsNeverSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		for round := range 2 {
			var logs []*Log
			for i := range 500 {
				cfg := d.config()
				cfg.Dir = fmt.Sprintf("/data/%03d", i)
				cfg.Prefill, cfg.MaxAge, cfg.MaxBytes = true, time.Hour, 1<<20
				if i%2 == 0 {
					cfg.Fsync = FsyncInterval
				}
				l, _ := mustOpen(t, cfg)
				if round == 0 {
					mustAppend(t, l, batch(0, 1, 10))
				}
				logs = append(logs, l)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			before := d.fs.Counts()
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			after := d.fs.Counts()
			for _, op := range []faultfs.Op{faultfs.OpDatasync, faultfs.OpSyncDir, faultfs.OpWrite} {
				if n := after.Of(op) - before.Of(op); n != 0 {
					t.Errorf("round %d: %d %ss in a day", round, n, op)
				}
			}
			opened := d.fs.Counts().Of(faultfs.OpDatasync)
			for _, l := range logs {
				mustClose(t, l)
			}
			if closing := d.fs.Counts().Of(faultfs.OpDatasync) - opened; round > 0 && closing != 0 {
				t.Errorf("%d flushes for closing logs that were only opened", closing)
			}
		}
		if n := d.fs.OpenFiles(); n != 0 {
			t.Errorf("%d files are open", n)
		}
	})
}

// The nth flush fails, for each n; what was acknowledged before is there after a
// power cut, and nothing is acknowledged after it.
func TestFlushFailsAtAnyTime(t *testing.T) {
	for n := range 40 {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.Committed, cfg.SegmentBytes = c.report, 1<<10
		l, _ := mustOpen(t, cfg)
		d.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Skip: n})
		var failed error
		for failed == nil {
			next := l.Next()
			if failed = l.Append([]Record{batch(next, 1, 100)}); failed == nil {
				failed = c.wait(next + 1)
			}
			if next > 100 {
				t.Fatal("no flush failed")
			}
		}
		// The flush of a new segment's header may fail without harm to the rest.
		if !errors.Is(failed, syscall.EIO) {
			t.Fatalf("flush %d: %v", n, failed)
		}
		poisoned := errors.Is(failed, ErrPoisoned)
		acked := c.committed()
		err := l.Append([]Record{batch(l.Next(), 1, 100)})
		if poisoned != errors.Is(err, ErrPoisoned) {
			t.Fatalf("flush %d: the next append: %v", n, err)
		}
		if poisoned && c.committed() != acked {
			t.Fatalf("flush %d: committed %d after %d and a failure", n, c.committed(), acked)
		}
		acked = c.committed()
		image := d.crash(faultfs.Drop, 1)
		reopened, rec := mustOpen(t, image.config())
		if rec.Next < acked || rec.ReadOnly != nil {
			t.Fatalf("flush %d: acked %d: %+v", n, acked, rec)
		}
		checkDense(t, reopened, 0, rec.Next)
		mustClose(t, reopened)
		if err := l.Close(); poisoned != errors.Is(err, ErrPoisoned) {
			t.Fatalf("flush %d: close: %v", n, err)
		}
		if c.wrong != nil {
			t.Fatal(c.wrong)
		}
		if n := d.fs.OpenFiles(); n != 0 {
			t.Fatalf("%d files are open", n)
		}
	}
}

// Who counts is told of each flush, and of what came of it.
func TestSyncedIsToldOfEachFlush(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	told := make(chan error, 10)
	cfg.Committed, cfg.Synced = c.report, func(took time.Duration, err error) {
		if took < 0 {
			t.Errorf("a flush took %v", took)
		}
		told <- err
	}
	l, _ := mustOpen(t, cfg)
	for i := range uint64(3) {
		mustAppend(t, l, batch(i, 1, 10))
		if err := c.wait(i + 1); err != nil {
			t.Fatal(err)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
	d.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync})
	mustAppend(t, l, batch(3, 1, 10))
	if err := <-told; !errors.Is(err, syscall.EIO) {
		t.Errorf("told of %v", err)
	}
	_ = l.Close() // poisoned
	if st := l.Stats(); len(told) != 0 || st.Syncs != 4 {
		t.Errorf("%d more reports, stats %+v", len(told), st)
	}
}
