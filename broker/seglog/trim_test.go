package seglog

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/vfs/faultfs"
)

func TestTrimByBytes(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 200, 100)
	if n, err := l.Trim(); n != 0 || err != nil {
		t.Fatalf("no retention: %d removed, %v", n, err)
	}
	mustClose(t, l)

	cfg.MaxBytes = 64 << 10 // segments of 8 KiB would do, the smaller setting counts
	var told atomic.Uint64
	cfg.Trimmed = func(n int) { told.Add(uint64(n)) }
	c.next = 200
	l, _ = mustOpen(t, cfg)
	if got := l.cfg.SegmentBytes; got != 4<<10 {
		t.Errorf("segment bytes %d", got)
	}
	for l.Next() < 1000 {
		fillLog(t, l, c, l.Next()+50, 100)
		if _, err := l.Trim(); err != nil {
			t.Fatal(err)
		}
		if got := l.Stats().Bytes; got > cfg.MaxBytes || got < cfg.MaxBytes*7/8 && l.Oldest() > 0 {
			t.Fatalf("%d bytes kept of %d, oldest %d", got, cfg.MaxBytes, l.Oldest())
		}
		checkDense(t, l, l.Oldest(), l.Next())
	}
	var old *TooOldError
	if _, err := l.Read(l.Oldest()-1, l.Next(), 1000, nil); !errors.As(err, &old) || old.Requested != l.Oldest()-1 || old.Oldest != l.Oldest() {
		t.Fatalf("read of what is gone: %v", err)
	}
	if n := l.Stats().TrimmedSegments; n == 0 || told.Load() != n {
		t.Errorf("%d trimmed segments are counted, told of %d", n, told.Load())
	}
	mustClose(t, l)
	for _, suffix := range []string{segmentSuffix, indexSuffix} {
		if bases := d.bases(suffix); bases[0] < l.Oldest() {
			t.Errorf("%s files begin at %d, the log at %d", suffix, bases[0], l.Oldest())
		}
	}
}

// With a bound of its own size a log would keep nearly nothing right after a roll;
// so segments are cut smaller.
func TestMaxBytesCutsSegments(t *testing.T) {
	for _, c := range []struct{ segment, max, want int64 }{
		{0, 0, 64 << 20}, {0, 1 << 30, 64 << 20}, {0, 64 << 20, 8 << 20}, {0, 1, 64 << 10}, {1 << 10, 1 << 30, 1 << 10},
	} {
		cfg := Config{Dir: "x", SegmentBytes: c.segment, MaxBytes: c.max}
		cfg.setDefaults()
		if cfg.SegmentBytes != c.want {
			t.Errorf("segment %d, max %d: %d, want %d", c.segment, c.max, cfg.SegmentBytes, c.want)
		}
	}
}

// B46: retention, then restart: it begins at the oldest kept offset.
func TestTrimByAgeThenReopen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.Committed, cfg.MaxAge = c.report, time.Minute
		l, _ := mustOpen(t, cfg)
		at := func(base uint64) Record {
			r := batch(base, 1, 100)
			r.TimeMicros = time.Now().UnixMicro()
			return r
		}
		for len(*l.segs.Load()) < 4 {
			mustAppend(t, l, at(l.Next()))
			time.Sleep(time.Second)
		}
		segs := *l.segs.Load()
		// Not before the newest record of the first segment is a minute old.
		first := time.UnixMicro(at(0).TimeMicros).Add(-time.Duration(l.Next()-segs[1].base+1) * time.Second)
		time.Sleep(time.Until(first.Add(time.Minute)))
		if n, err := l.Trim(); n != 0 || err != nil {
			t.Fatalf("%d removed, %v", n, err)
		}
		time.Sleep(20 * time.Second) // by itself
		synctest.Wait()
		if got := l.Oldest(); got != segs[1].base {
			t.Fatalf("oldest %d, want %d", got, segs[1].base)
		}
		next := l.Next()
		mustClose(t, l)
		for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Keep} {
			image := d.crash(policy, 1)
			l, rec := mustOpen(t, image.config())
			if rec.Oldest != segs[1].base || rec.Next != next || rec.ReadOnly != nil {
				t.Fatalf("recovery: %+v", rec)
			}
			checkDense(t, l, rec.Oldest, next)
			mustClose(t, l)
		}
		// What is all too old goes at the first look, but for the active segment.
		time.Sleep(time.Hour)
		c.next = next
		for _, name := range d.bases(indexSuffix)[1:2] {
			d.remove(d.path(name, indexSuffix)) // its age must then be found in the segment
		}
		l, _ = mustOpen(t, cfg)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := l.Oldest(); got != segs[3].base {
			t.Fatalf("oldest %d, want the active segment's %d", got, segs[3].base)
		}
		checkDense(t, l, segs[3].base, next)
		mustClose(t, l)
	})
}

// A reader inside a segment finishes its read; the next one is told.
func TestTrimUnderReader(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 200, 100)
	slow := l.NewCursor(0)
	if _, err := slow.Read(200, 500, nil); err != nil {
		t.Fatal(err)
	}
	entered, release := d.fs.Hold(faultfs.OpRead, nil)
	type result struct {
		page Page
		err  error
	}
	read := make(chan result)
	go func() {
		p, err := slow.Read(200, 500, nil)
		read <- result{p, err}
	}()
	<-entered
	l.trimMu.Lock()
	l.cfg.MaxBytes = 1
	l.trimMu.Unlock()
	removed, err := l.Trim()
	if err != nil || removed == 0 {
		t.Fatalf("trim under a reader: %d, %v", removed, err)
	}
	if bases := d.bases(segmentSuffix); !slices.Equal(bases, []uint64{l.Oldest()}) {
		t.Fatalf("files %v, oldest %d", bases, l.Oldest())
	}
	release()
	got := <-read
	if got.err != nil {
		t.Fatal(got.err)
	}
	if evs, err := decodePage(got.page); err != nil || len(evs) == 0 {
		t.Fatalf("page of a removed segment: %v, %v", evs, err)
	}
	var old *TooOldError
	if _, err := slow.Read(200, 500, nil); !errors.As(err, &old) || old.Oldest != l.Oldest() || old.Requested != got.page.Next {
		t.Fatalf("reading on: %v", err)
	}
	slow.Seek(old.Oldest)
	if _, err := slow.Read(200, 500, nil); err != nil {
		t.Fatalf("reading on from the oldest: %v", err)
	}
}

// What can't be removed stays hidden, keeps the order, and is removed later.
func TestTrimFailsAndGoesOn(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 200, 100)
	l.trimMu.Lock()
	l.cfg.MaxBytes = 1
	l.trimMu.Unlock()
	for _, fault := range []faultfs.Fault{
		{Op: faultfs.OpRemove, Name: faultfs.HasSuffix(segmentSuffix), Err: syscall.EROFS},
		{Op: faultfs.OpSyncDir},
		{Op: faultfs.OpRemove, Name: faultfs.HasSuffix(segmentSuffix), Skip: 1},
	} {
		d.fs.Inject(fault)
		if _, err := l.Trim(); !errors.Is(err, fault.Err) && !errors.Is(err, syscall.EIO) {
			t.Fatalf("trim: %v", err)
		}
		for seed := range uint64(20) {
			image := d.crash(faultfs.Random, seed)
			reopened, rec := mustOpen(t, image.config())
			if rec.ReadOnly != nil || rec.Oldest > l.Oldest() || rec.Next != 200 {
				t.Fatalf("oldest is %d: %+v", l.Oldest(), rec)
			}
			checkDense(t, reopened, rec.Oldest, 200)
			mustClose(t, reopened)
		}
	}
	if _, err := l.Trim(); err != nil {
		t.Fatal(err)
	}
	if bases := d.bases(segmentSuffix); len(bases) != 1 {
		t.Fatalf("files %v", bases)
	}
}

// Segments aren't removed before they are durable, nor is the active one.
func TestTrimKeepsActive(t *testing.T) {
	d := newDisk(t)
	var now atomic.Int64
	cfg := d.config()
	cfg.MaxAge, cfg.MaxBytes, cfg.Now = time.Second, 1, func() time.Time { return time.UnixMicro(now.Load()) }
	l, _ := mustOpen(t, cfg)
	mustAppend(t, l, batch(0, 1, 5000))
	now.Store(1 << 60)
	if n, err := l.Trim(); n != 0 || err != nil {
		t.Fatalf("%d removed, %v", n, err)
	}
	checkDense(t, l, 0, 1)
}

// What keeps retention from its work is said once, not at every attempt.
func TestTrimTroubleIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		c := newCommits()
		var lines bytes.Buffer // written by the keeper, read when all is idle
		cfg := d.config()
		cfg.Committed, cfg.MaxAge, cfg.Log = c.report, time.Minute, slog.New(slog.NewTextHandler(&lines, nil))
		l, _ := mustOpen(t, cfg)
		d.fs.Inject(faultfs.Fault{Op: faultfs.OpRemove, Name: faultfs.HasSuffix(segmentSuffix), Times: -1})
		for len(*l.segs.Load()) < 4 {
			r := batch(l.Next(), 1, 100)
			r.TimeMicros = time.Now().UnixMicro()
			mustAppend(t, l, r)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(lines.String(), "retention cannot remove"); n != 1 {
			t.Errorf("said %d times:\n%s", n, lines.String())
		}
		d.fs.Heal()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(*l.segs.Load()); got != 1 {
			t.Errorf("%d segments are left", got)
		}
		mustClose(t, l)
	})
}
