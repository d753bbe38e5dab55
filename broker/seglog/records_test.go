package seglog

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Records gives back what was appended, hidden records and producers included, across
// segments and from any offset, in pages that are not larger than asked for.
func TestRecords(t *testing.T) {
	d := newDisk(t)
	cfg := d.config()
	cfg.SegmentBytes, cfg.First, cfg.IndexEvery = 700, 40, 200
	l, _ := mustOpen(t, cfg)
	defer mustClose(t, l)
	var want []Record
	next := uint64(40)
	add := func(r Record) {
		r.TimeMicros = int64(1000 + next)
		mustAppend(t, l, r)
		want = append(want, r)
		next += uint64(r.Count)
	}
	for i := range 20 {
		add(batch(next, 1+i%3, 30+i))
		if i%5 == 0 {
			add(generation(next))
		}
		if i%4 == 0 {
			add(withProducer(batch(next, 2, 10), 7, uint64(i)))
		}
	}
	for from := uint64(40); from < next; from++ {
		var got []Record
		var buf []byte
		for at := from; at < next; {
			page, b, err := l.Records(at, 300, buf)
			if err != nil || len(page) == 0 {
				t.Fatalf("at %d: %d records, %v", at, len(page), err)
			}
			size := 0
			for _, r := range page {
				size += len(r.Frame)
				at = r.Base + uint64(r.Count)
			}
			if len(page) > 1 && size > 300 {
				t.Fatalf("a page of %d bytes", size)
			}
			got, buf = append(got, page...), nil
			_ = b
		}
		first := 0
		for want[first].Base+uint64(want[first].Count) <= from {
			first++
		}
		if diff := cmp.Diff(want[first:], got); diff != "" {
			t.Fatalf("from %d (-want +got):\n%s", from, diff)
		}
	}
	if page, _, err := l.Records(next, 300, nil); len(page) != 0 || err != nil {
		t.Errorf("at the end: %d records, %v", len(page), err)
	}
	var old *TooOldError
	if _, _, err := l.Records(39, 300, nil); !errors.As(err, &old) {
		t.Errorf("before the beginning: %v", err)
	}
	f, err := d.fs.OpenFile(d.path(40, segmentSuffix), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("spoilt"), segmentHeaderLen+50); err != nil {
		t.Fatal(err)
	}
	var bad *CorruptionError
	if _, _, err := l.Records(40, 300, nil); !errors.As(err, &bad) || bad.Offset != 40 {
		t.Errorf("where it is damaged: %v", err)
	}
}

// TrimPoint says what retention keeps and removes nothing.
func TestTrimPoint(t *testing.T) {
	d := newDisk(t)
	now := time.UnixMicro(1_700_000_000_000_000)
	cfg := d.manual()
	cfg.SegmentBytes, cfg.Now = 500, func() time.Time { return now }
	l, _ := mustOpen(t, cfg)
	defer mustClose(t, l)
	for i := range uint64(12) {
		r := batch(i, 1, 200)
		r.TimeMicros = now.Add(time.Duration(i-12) * time.Hour).UnixMicro()
		mustAppend(t, l, r)
	}
	bases := d.bases(segmentSuffix)
	if len(bases) < 4 {
		t.Fatalf("%d segments", len(bases))
	}
	for _, c := range []struct {
		bytes int64
		age   time.Duration
		want  uint64
	}{
		{0, 0, 0},
		{1 << 20, 0, 0},
		{1, 0, bases[len(bases)-1]},
		{0, time.Minute, bases[len(bases)-1]},
		{0, 24 * time.Hour, 0},
		{0, 6*time.Hour + time.Minute, 6 - 6%(bases[1]-bases[0])},
	} {
		if got, err := l.TrimPoint(c.bytes, c.age); err != nil || got != c.want {
			t.Errorf("%d bytes, %v: %d, %v; want %d (segments %v)", c.bytes, c.age, got, err, c.want, bases)
		}
	}
	if got := d.bases(segmentSuffix); len(got) != len(bases) || l.Oldest() != 0 {
		t.Errorf("something is gone: %v of %v", got, bases)
	}
}
