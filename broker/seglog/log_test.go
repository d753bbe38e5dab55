package seglog

import (
	"errors"
	"testing"
)

func TestAppendReadReopen(t *testing.T) {
	for _, prefill := range []bool{false, true} {
		dir := t.TempDir() + "/a/b"
		c := newCommits()
		cfg := Config{
			Dir: dir, SegmentBytes: 8 << 10, IndexEvery: 512, Prefill: prefill, Committed: c.report,
			prefill: prefillSizes{after: 512, min: 1 << 10, max: 4 << 10, chunk: 1 << 10},
		}
		l, rec := mustOpen(t, cfg)
		if rec.Next != 0 || rec.ReadOnly != nil {
			t.Fatalf("recovery of an empty log: %+v", rec)
		}
		next := uint64(0)
		for i := range 200 {
			recs := []Record{batch(next, 1+i%3, 40), withProducer(batch(next+uint64(1+i%3), 2, 100), 7, uint64(i))}
			mustAppend(t, l, recs...)
			next += uint64(1+i%3) + 2
		}
		if err := c.wait(next); err != nil {
			t.Fatal(err)
		}
		checkDense(t, l, 0, next)
		for from := uint64(0); from < next; from += 7 {
			checkDense(t, l, from, next)
		}
		mustClose(t, l)
		if err := l.Append([]Record{batch(next, 1, 1)}); !errors.Is(err, ErrClosed) {
			t.Fatalf("append after close: %v", err)
		}
		l, rec = mustOpen(t, cfg)
		if rec.Next != next || rec.Cut != nil || rec.ReadOnly != nil {
			t.Fatalf("recovery: %+v, want next %d", rec, next)
		}
		c.next = next
		checkDense(t, l, 0, next)
		mustAppend(t, l, batch(next, 5, 10))
		checkDense(t, l, next-3, next+5)
		mustClose(t, l)
	}
}
