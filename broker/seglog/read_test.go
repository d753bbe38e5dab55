package seglog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

func TestPages(t *testing.T) {
	l, _ := mustOpen(t, Config{FS: faultfs.New(1), Dir: diskDir, First: 100})
	// 100-102 events, 103 hidden, 104 hidden, 105-106 events, 107 event, 108 hidden
	mustAppend(t, l, batch(100, 3, 10), generation(103), generation(104), batch(105, 2, 10), batch(107, 1, 10), generation(108))
	frame := func(r Record) []byte { return r.Frame }
	from := func(r Record, offset uint64) []byte {
		b, err := wire.AppendFrom(nil, r.Frame, offset)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	join := func(frames ...[]byte) (all []byte) {
		for _, f := range frames {
			all = append(all, f...)
		}
		return all
	}
	both := join(frame(batch(105, 2, 10)), frame(batch(107, 1, 10)))
	tests := []struct {
		name        string
		from, limit uint64
		max         int
		want        Page
	}{
		{"up to the hidden one", 100, 109, 1000, Page{First: 100, Next: 103, Frames: frame(batch(100, 3, 10)), Records: 1}},
		{"cut at its start", 101, 109, 1000, Page{First: 101, Next: 103, Frames: from(batch(100, 3, 10), 101), Records: 1}},
		{"cut to its last", 102, 103, 1000, Page{First: 102, Next: 103, Frames: from(batch(100, 3, 10), 102), Records: 1}},
		{"hidden ones passed", 103, 109, 1000, Page{Skipped: 2, First: 105, Next: 108, Frames: both, Records: 2}},
		{"from the second hidden", 104, 109, 1000, Page{Skipped: 1, First: 105, Next: 108, Frames: both, Records: 2}},
		{"after them", 105, 109, 1000, Page{First: 105, Next: 108, Frames: both, Records: 2}},
		{"one frame at least", 105, 109, 1, Page{First: 105, Next: 107, Frames: frame(batch(105, 2, 10)), Records: 1}},
		{"as many as fit", 105, 109, len(both) - 1, Page{First: 105, Next: 107, Frames: frame(batch(105, 2, 10)), Records: 1}},
		{"exactly as many", 105, 109, len(both), Page{First: 105, Next: 108, Frames: both, Records: 2}},
		{"limit", 105, 107, 1000, Page{First: 105, Next: 107, Frames: frame(batch(105, 2, 10)), Records: 1}},
		{"limit inside a frame", 105, 106, 1000, Page{First: 105, Next: 105}},
		{"limit inside hidden ones", 103, 104, 1000, Page{Skipped: 1, First: 104, Next: 104}},
		{"only a hidden one", 108, 109, 1000, Page{Skipped: 1, First: 109, Next: 109}},
		{"at the end", 109, 200, 1000, Page{First: 109, Next: 109}},
		{"beyond the end", 150, 200, 1000, Page{First: 150, Next: 150}},
		{"limit below", 105, 3, 1000, Page{First: 105, Next: 105}},
	}
	for _, test := range tests {
		for _, buf := range [][]byte{nil, make([]byte, 10), make([]byte, 0, 1<<20)} {
			got, err := l.Read(test.from, test.limit, test.max, buf)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if len(got.Frames) == 0 {
				got.Frames = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
		}
	}
	var old *TooOldError
	if _, err := l.Read(99, 109, 1000, nil); !errors.As(err, &old) || old.Oldest != 100 || old.Requested != 99 {
		t.Errorf("read before the first: %v", err)
	}
	mustClose(t, l)
	if _, err := l.Read(100, 109, 1000, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
}

// Hidden records are counted whatever lies between them: a page, a segment's end,
// the end of the log for now.
func TestHiddenAcrossSegments(t *testing.T) {
	d := newDisk(t)
	cfg := d.config()
	cfg.SegmentBytes = 200
	l, _ := mustOpen(t, cfg)
	rng := rand.New(rand.NewPCG(1, 1))
	var want []event
	hidden := uint64(0)
	for l.Next() < 300 {
		if rng.IntN(2) == 0 {
			mustAppend(t, l, generation(l.Next()))
			hidden++
			continue
		}
		want = append(want, event{offset: l.Next(), skipped: hidden})
		mustAppend(t, l, batch(l.Next(), 1, 20))
		hidden = 0
	}
	for _, pageBytes := range []int{1, 200, 1 << 20} {
		got, err := readAll(l, 0, pageBytes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			// The hidden ones of an empty page at the end belong to nobody yet.
			if got[i] != want[i] {
				t.Fatalf("page of %d: event %d is %+v, want %+v", pageBytes, i, got[i], want[i])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("page of %d: %d events, want %d", pageBytes, len(got), len(want))
		}
	}
}

// Records larger than a page, a window or the caller's buffer come alone (B51).
func TestLargeRecords(t *testing.T) {
	d := newDisk(t)
	cfg := d.config()
	cfg.SegmentBytes = 1 << 20
	l, _ := mustOpen(t, cfg)
	sizes := []int{10, 4096, 100_000, 5, 1 << 20, 3 << 20, 7}
	for i, size := range sizes {
		mustAppend(t, l, batch(uint64(i), 1, size))
	}
	big := batchOf(uint64(len(sizes)), make([]byte, wire.MaxRecord))
	mustAppend(t, l, big)
	for _, pageBytes := range []int{0, 1, 4096, 200_000} {
		evs, err := readUntil(l, 0, uint64(len(sizes)), pageBytes)
		if err != nil || len(evs) != len(sizes) {
			t.Fatalf("page of %d: %d events, %v", pageBytes, len(evs), err)
		}
	}
	p, err := l.Read(big.Base, l.Next(), 1000, nil)
	if err != nil || !bytes.Equal(p.Frames, big.Frame) {
		t.Fatalf("the largest record: %v", err)
	}
	mustClose(t, l)
	l, rec := mustOpen(t, cfg)
	if rec.Next != big.Base+1 || rec.ReadOnly != nil {
		t.Fatalf("recovery: %+v", rec)
	}
	tooBig := Record{Kind: KindGenerationStart, Base: l.Next(), Count: 1, Frame: make([]byte, maxBodyLen+1)}
	if err := l.Append([]Record{tooBig}); err == nil || l.Err() != nil {
		t.Fatalf("append of what can't be read back: %v, %v", err, l.Err())
	}
}

func TestAppendRefusesWrongRecords(t *testing.T) {
	l, _ := mustOpen(t, Config{FS: faultfs.New(1), Dir: diskDir})
	mustAppend(t, l, batch(0, 3, 10))
	change := func(f func(*Record)) Record { r := batch(3, 2, 10); f(&r); return r }
	for name, recs := range map[string][]Record{
		"gap":                   {batch(4, 1, 10)},
		"overlap":               {batch(2, 1, 10)},
		"gap inside":            {batch(3, 1, 10), batch(5, 1, 10)},
		"no kind":               {change(func(r *Record) { r.Kind = 0 })},
		"unknown kind":          {change(func(r *Record) { r.Kind = 3 })},
		"count differs":         {change(func(r *Record) { r.Count = 3 })},
		"base differs":          {change(func(r *Record) { r.Frame = batch(4, 2, 10).Frame })},
		"frame cut":             {change(func(r *Record) { r.Frame = r.Frame[:len(r.Frame)-1] })},
		"frame and more":        {change(func(r *Record) { r.Frame = append(r.Frame, 0) })},
		"no frame":              {change(func(r *Record) { r.Frame = nil })},
		"hidden that takes two": {change(func(r *Record) { r.Kind = KindGenerationStart })},
		"good, then bad":        {batch(3, 1, 10), batch(4, 1, 10), generation(6)},
	} {
		if err := l.Append(recs); err == nil {
			t.Errorf("%s: appended", name)
		}
		if l.Next() != 3 || l.Err() != nil {
			t.Fatalf("%s: next %d, %v", name, l.Next(), l.Err())
		}
	}
	if err := l.Append(nil); err != nil {
		t.Errorf("append of nothing: %v", err)
	}
	mustAppend(t, l, batch(3, 1, 10))
	checkDense(t, l, 0, 4)
}

// A read that fails for the disk's reasons can be tried again and loses nothing.
// A reader that wants to be asked gets no large frame unasked, also behind hidden
// records, and gets it when it says that it has room.
func TestReadAsks(t *testing.T) {
	const large = 300 << 10
	l, _ := mustOpen(t, Config{FS: faultfs.New(1), Dir: diskDir})
	mustAppend(t, l, batch(0, 1, 10), generation(1), batch(2, 1, large), batch(3, 1, 10))
	c := l.NewCursor(0)
	c.AskAbove = 256 << 10
	read := func(maxBytes int) Page {
		t.Helper()
		p, err := c.Read(4, maxBytes, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := read(100); p.Next != 1 || p.Records != 1 || p.Need != 0 {
		t.Errorf("the small frame before it: %d records up to %d, need %d", p.Records, p.Next, p.Need)
	}
	p := read(100)
	if p.Next != 2 || p.Records != 0 || len(p.Frames) != 0 || p.Need < large || p.Need > large+1000 {
		t.Fatalf("the large frame: %d records up to %d, need %d", p.Records, p.Next, p.Need)
	}
	if again := read(p.Need - 1); again.Next != 2 || again.Need != p.Need {
		t.Errorf("without enough room: up to %d, need %d", again.Next, again.Need)
	}
	if p := read(p.Need); p.Next != 3 || p.Records != 1 || p.Need != 0 || cap(p.Frames) > large+1000 {
		t.Errorf("with room: %d records up to %d, need %d, %d bytes taken", p.Records, p.Next, p.Need, cap(p.Frames))
	}
	if p := read(100); p.Next != 4 || p.Records != 1 {
		t.Errorf("the small frame behind it: %d records up to %d", p.Records, p.Next)
	}
}

func TestReadErrorsAreTemporary(t *testing.T) {
	d := newDisk(t)
	l, _ := mustOpen(t, d.config())
	for l.Next() < 100 {
		mustAppend(t, l, batch(l.Next(), 1, 100))
	}
	mustClose(t, l)
	for _, op := range []faultfs.Op{faultfs.OpRead, faultfs.OpOpen} {
		for n := range 20 {
			l, _ := mustOpen(t, d.config())
			d.fs.Inject(faultfs.Fault{Op: op, Skip: n})
			c := l.NewCursor(0)
			var got []event
			failures := 0
			for c.Offset() < 100 {
				p, err := c.Read(100, 1000, nil)
				if errors.Is(err, syscall.EIO) {
					if _, bad := isCorruption(err); bad {
						t.Fatalf("an I/O error became damage: %v", err)
					}
					failures++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				evs, err := decodePage(p)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, evs...)
			}
			if len(got) != 100 || failures > 1 {
				t.Fatalf("%s %d: %d events, %d failures", op, n, len(got), failures)
			}
			mustClose(t, l)
			d.fs.Heal()
		}
	}
}

// Many segments that are read now and then don't stay open for ever.
func TestIdleSegmentsAreClosed(t *testing.T) {
	d := newDisk(t)
	cfg := d.config()
	cfg.SegmentBytes = 300
	l, _ := mustOpen(t, cfg)
	for len(*l.segs.Load()) < 60 {
		mustAppend(t, l, batch(l.Next(), 1, 100))
	}
	for range 2 {
		checkDense(t, l, 0, l.Next())
		eventually(t, "closed segments are closed", func() bool { return d.fs.OpenFiles() <= keepOpen+1 })
	}
}

// B25: readers that begin anywhere see consecutive offsets, over many segments,
// while the log is appended to and trimmed.
func TestRandomReaders(t *testing.T) {
	records, readers, rounds := uint64(1_000_000), 8, 10
	if testing.Short() || raceEnabled {
		records, rounds = 60_000, 3
	}
	const perBatch = 20
	c := newCommits()
	l, _ := mustOpen(t, Config{Dir: t.TempDir(), SegmentBytes: int64(records) * 24 / 20, Committed: c.report, Fsync: FsyncInterval, Prefill: true})
	for l.Next() < records {
		recs := make([]Record, 0, 50)
		for i := range cap(recs) {
			recs = append(recs, batch(l.Next()+uint64(i*perBatch), perBatch, 16))
		}
		mustAppend(t, l, recs...)
	}
	if n := len(*l.segs.Load()); n < 15 {
		t.Fatalf("%d segments", n)
	}
	for round := range rounds {
		var wg sync.WaitGroup
		for reader := range readers {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(reader)))
			wg.Go(func() {
				from := rng.Uint64N(records)
				limit := min(from+records/10, records) / perBatch * perBatch // as commits are: between batches
				evs, err := readUntil(l, from, limit, 1<<10<<rng.IntN(8))
				if err != nil {
					t.Errorf("from %d: %v", from, err)
					return
				}
				for i, e := range evs {
					if e.offset != from+uint64(i) {
						t.Errorf("from %d: event %d is offset %d", from, i, e.offset)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// Appends, reads of all kinds, retention and statistics at once.
func TestConcurrentUse(t *testing.T) {
	c := newCommits()
	l, _ := mustOpen(t, Config{
		Dir: t.TempDir(), SegmentBytes: 16 << 10, IndexEvery: 1 << 10, MaxBytes: 256 << 10,
		Committed: c.report, Prefill: true, prefill: prefillSizes{after: 1 << 10, min: 4 << 10, max: 8 << 10, chunk: 2 << 10},
	})
	const records = 20_000
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for reader := range 4 {
		rng := rand.New(rand.NewPCG(7, uint64(reader)))
		wg.Go(func() {
			cur := l.NewCursor(0)
			var buf []byte
			for {
				limit := c.committed()
				p, err := cur.Read(limit, 512<<rng.IntN(6), buf)
				var old *TooOldError
				switch {
				case errors.As(err, &old):
					cur.Seek(old.Oldest)
					continue
				case err != nil:
					t.Errorf("read: %v", err)
					return
				}
				if _, err := decodePage(p); err != nil || p.Next > limit {
					t.Errorf("page %+v below %d: %v", p, limit, err)
					return
				}
				buf = p.Frames
				if rng.IntN(20) == 0 {
					cur.Seek(l.Oldest() + rng.Uint64N(max(limit-l.Oldest(), 1)))
				}
				select {
				case <-stop:
					return
				default:
				}
				if p.Next == limit {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := l.Trim(); err != nil {
				t.Errorf("trim: %v", err)
			}
			if st := l.Stats(); st.Durable > st.Next+records || st.Err != nil {
				t.Errorf("stats %+v", st)
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	for l.Next() < records {
		mustAppend(t, l, batch(l.Next(), 3, 30), generation(l.Next()+3), batch(l.Next()+4, 1, 200))
	}
	err := c.wait(l.Next())
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if l.Stats().TrimmedSegments == 0 {
		t.Error("nothing was trimmed")
	}
}

// B07: what readers of history hold is a page each, however long the log is.
func TestManyHistoryReaders(t *testing.T) {
	l, _ := mustOpen(t, Config{Dir: t.TempDir(), SegmentBytes: 1 << 20, Fsync: FsyncInterval})
	for l.Stats().Bytes < 16<<20 {
		mustAppend(t, l, batch(l.Next(), 16, 1000))
	}
	const readers, page = 50, 32 << 10
	cursors := make([]*Cursor, readers)
	bufs := make([][]byte, readers)
	for i := range cursors {
		cursors[i], bufs[i] = l.NewCursor(0), make([]byte, 0, page)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 200 {
		for i, c := range cursors {
			p, err := c.Read(l.Next(), page, bufs[i])
			if err != nil {
				t.Fatal(err)
			}
			if cap(p.Frames) != page {
				t.Fatalf("a page needed a buffer of %d", cap(p.Frames))
			}
			if p.Next == l.Next() {
				c.Seek(0)
			}
		}
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("heap grew from %d to %d bytes", before, after)
	}
	runtime.KeepAlive(bufs)
}
