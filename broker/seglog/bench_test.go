package seglog

import (
	"fmt"
	"testing"
	"time"

	"felix.dev/felix/broker/wire"
)

// claim is what one append of the benchmarks takes: 64 publishes of a record each.
type claim struct {
	recs []Record
	size int64
}

func newClaim(size int) *claim {
	c := &claim{}
	for i := range 64 {
		r := batchOf(uint64(i), make([]byte, size))
		c.recs = append(c.recs, r)
		c.size += recordHeaderLen + int64(len(r.Frame))
	}
	return c
}

// at moves the claim to where the log ends.
func (c *claim) at(base uint64) []Record {
	for i := range c.recs {
		r := &c.recs[i]
		r.Base = base + uint64(i)
		region := len(r.Frame) - wire.OffsetFrameOverhead
		wire.BeginOffsetFrame(r.Frame[:0], r.Base, 1, region)
	}
	return c.recs
}

// Allocation on the publish path is a budget: an append and its flush may allocate
// for a new index entry now and then, never for a record.
func TestAppendAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, mode := range []Fsync{FsyncAlways, FsyncInterval} {
		c := newCommits()
		l, _ := mustOpen(t, Config{Dir: t.TempDir(), Fsync: mode, FsyncEvery: time.Millisecond, Committed: c.report, Prefill: true})
		cl := newClaim(256)
		per := testing.AllocsPerRun(200, func() {
			mustAppend(t, l, cl.at(l.Next())...)
			if err := c.wait(l.Next()); err != nil {
				t.Fatal(err)
			}
		})
		if per > 2 {
			t.Errorf("mode %d: %.1f allocations for an append of %d records, want 2 at most", mode, per, len(cl.recs))
		}
	}
}

// Reading on with a buffer that is large enough allocates nothing.
func TestReadAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l, _ := mustOpen(t, Config{Dir: t.TempDir(), Fsync: FsyncInterval})
	cl := newClaim(256)
	for l.Next() < 64*200 {
		mustAppend(t, l, cl.at(l.Next())...)
	}
	c, buf := l.NewCursor(0), make([]byte, 64<<10)
	per := testing.AllocsPerRun(500, func() {
		p, err := c.Read(l.Next(), len(buf), buf)
		if err != nil {
			t.Fatal(err)
		}
		if p.Next == l.Next() {
			c.Seek(0)
		}
	})
	if per > 0 {
		t.Errorf("%.1f allocations for a page, want none", per)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, mode := range []struct {
		name  string
		fsync Fsync
	}{{"always", FsyncAlways}, {"interval", FsyncInterval}} {
		for _, size := range []int{256, 4096} {
			b.Run(fmt.Sprintf("%s/%d", mode.name, size), func(b *testing.B) {
				c := newCommits()
				l, _ := mustOpen(b, Config{Dir: b.TempDir(), Fsync: mode.fsync, Committed: c.report, Prefill: true, MaxBytes: 1 << 30})
				cl := newClaim(size)
				b.SetBytes(cl.size)
				b.ReportAllocs()
				for b.Loop() {
					mustAppend(b, l, cl.at(l.Next())...)
				}
				if err := c.wait(l.Next()); err != nil { // flushes are pipelined; the last one counts too
					b.Fatal(err)
				}
			})
		}
	}
}

func BenchmarkReadPage(b *testing.B) {
	for _, size := range []int{256, 4096} {
		for _, page := range []int{32 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%d/%dKiB", size, page>>10), func(b *testing.B) {
				l, _ := mustOpen(b, Config{Dir: b.TempDir(), Fsync: FsyncInterval})
				cl := newClaim(size)
				for l.Stats().Bytes < 64<<20 {
					mustAppend(b, l, cl.at(l.Next())...)
				}
				c, buf := l.NewCursor(0), make([]byte, page)
				b.SetBytes(int64(page))
				b.ReportAllocs()
				for b.Loop() {
					p, err := c.Read(l.Next(), page, buf)
					if err != nil {
						b.Fatal(err)
					}
					if p.Next == l.Next() {
						c.Seek(0)
					}
				}
			})
		}
	}
}

// BenchmarkReadFromAnywhere is a reader that has to search first.
func BenchmarkReadFromAnywhere(b *testing.B) {
	l, _ := mustOpen(b, Config{Dir: b.TempDir(), Fsync: FsyncInterval, SegmentBytes: 8 << 20})
	cl := newClaim(256)
	for l.Stats().Bytes < 64<<20 {
		mustAppend(b, l, cl.at(l.Next())...)
	}
	buf := make([]byte, 32<<10)
	b.ReportAllocs()
	from := uint64(0)
	for b.Loop() {
		from = (from + 7919*13) % l.Next()
		if _, err := l.Read(from, l.Next(), len(buf), buf); err != nil {
			b.Fatal(err)
		}
	}
}
