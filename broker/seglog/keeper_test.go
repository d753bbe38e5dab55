package seglog

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/vfs/faultfs"
)

// Segments are filled ahead in steps that grow with what they hold; small logs
// aren't, and closed segments give back what they did not need.
func TestFilledAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		cfg := d.config()
		cfg.SegmentBytes, cfg.Prefill = 64<<10, true
		cfg.prefill = prefillSizes{after: 2 << 10, min: 4 << 10, max: 16 << 10, chunk: 1 << 10}
		l, _ := mustOpen(t, cfg)
		ahead := func() int64 {
			synctest.Wait()
			w := l.active.Load()
			size, err := w.file.Size()
			if err != nil {
				t.Fatal(err)
			}
			return size - w.seg.end.Load()
		}
		rolls := 0
		for base := uint64(0); rolls < 3; {
			mustAppend(t, l, batch(l.Next(), 1, 200))
			got, used := ahead(), l.active.Load().seg.end.Load()
			if now := l.active.Load().seg.base; now != base {
				rolls++
				base = now
				if got < 15<<10 {
					t.Errorf("roll %d: the new segment has %d bytes ahead", rolls, got)
				}
			}
			switch {
			case used < cfg.prefill.after && rolls == 0 && got != 0:
				t.Fatalf("%d bytes ahead of %d used", got, used)
			case used < cfg.prefill.after && rolls == 0, used > cfg.SegmentBytes-1<<10:
			case got < cfg.prefill.min/2-300 && used+got < cfg.SegmentBytes, got > cfg.prefill.max+cfg.prefill.chunk:
				t.Fatalf("%d bytes ahead of %d used", got, used)
			}
		}
		checkDense(t, l, 0, l.Next())
		for _, base := range d.bases(segmentSuffix)[:rolls] {
			b := d.read(d.path(base, segmentSuffix))
			if b[len(b)-1] == 0 {
				t.Errorf("segment %d ends in zeros", base)
			}
		}
		mustClose(t, l)
		entries, err := d.fs.ReadDir(diskDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".tmp") {
				t.Errorf("%s is left", e.Name())
			}
		}
	})
}

// A disk that has no room for zeros is left alone for a while, and records still go
// where there is room for them.
func TestNoRoomForZeros(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.SegmentBytes, cfg.Prefill, cfg.prefill, cfg.Committed = 64<<10, true, testPrefill, c.report
		l, _ := mustOpen(t, cfg)
		// Only writes of zeros fail, they are a chunk each.
		entered := 0
		d.fs.Inject(faultfs.Fault{
			Op: faultfs.OpWrite, Times: -1, Err: syscall.ENOSPC,
			Name: func(name string) bool {
				if strings.HasSuffix(name, segmentSuffix) { // the keeper's handle; the writer's has the name it was created by
					entered++
					return true
				}
				return false
			},
		})
		for range 100 {
			mustAppend(t, l, batch(l.Next(), 1, 100))
			synctest.Wait()
		}
		if entered != 1 {
			t.Errorf("%d attempts to fill, want 1", entered)
		}
		d.fs.Heal()
		time.Sleep(fillRetry)
		mustAppend(t, l, batch(l.Next(), 1, 100))
		synctest.Wait()
		if got := l.active.Load().fill.ahead(); got < testPrefill.min {
			t.Errorf("%d bytes ahead once there is room", got)
		}
		if err := c.wait(101); err != nil {
			t.Error(err)
		}
		mustClose(t, l)
	})
}

// A flush of zeros is a flush of the records beside them: its failure counts.
func TestFailedFlushOfZerosPoisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.SegmentBytes, cfg.Prefill, cfg.prefill, cfg.Committed = 64<<10, true, testPrefill, c.report
		l, _ := mustOpen(t, cfg)
		d.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Name: faultfs.HasSuffix(segmentSuffix)})
		var err error
		for range 100 {
			if err = l.Append([]Record{batch(l.Next(), 1, 100)}); err != nil {
				break
			}
			synctest.Wait()
		}
		if !errors.Is(err, ErrPoisoned) || !errors.Is(c.wait(1000), ErrPoisoned) {
			t.Errorf("append: %v", err)
		}
		if err := l.Close(); !errors.Is(err, ErrPoisoned) {
			t.Errorf("close: %v", err)
		}
	})
}
