package seglog

import (
	"slices"
	"strings"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
)

// B43: indexes that are missing, empty, stale or damaged, segments without index and
// indexes without segment: the log opens, or refuses appends with one clear message;
// it never loops and never deletes records.
func TestIndexAndSegmentOrphans(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 150, 100)
	eventually(t, "indexes of closed segments", func() bool { return len(d.bases(indexSuffix)) == len(d.bases(segmentSuffix))-1 })
	bases := d.bases(segmentSuffix)
	n := len(bases)
	if n < 4 {
		t.Fatalf("segments %v", bases)
	}
	crashed := d.copy() // without a mark
	mustClose(t, l)
	closed := d

	index := func(i int) string { return d.path(bases[i], indexSuffix) }
	segment := func(i int) string { return d.path(bases[i], segmentSuffix) }
	garbage := []byte(strings.Repeat("no index at all ", 20))
	tests := []struct {
		name    string
		damage  func(*disk)
		corrupt int // number of the segment that is refused, -1: none
		next    uint64
		reason  string
		onlyAt  string // "closed" or "crashed"
	}{
		{name: "index missing", damage: func(d *disk) { d.remove(index(1)) }, corrupt: -1},
		{name: "all indexes missing", damage: func(d *disk) {
			for i := range n - 1 {
				d.remove(index(i))
			}
		}, corrupt: -1},
		{name: "index empty", damage: func(d *disk) { d.write(index(1), nil) }, corrupt: -1},
		{name: "index garbage", damage: func(d *disk) { d.write(index(n-2), garbage) }, corrupt: -1},
		{name: "index flipped", damage: func(d *disk) { d.flip(index(1), 80, 2) }, corrupt: -1},
		{name: "index cut", damage: func(d *disk) { d.write(index(n-2), d.read(index(n - 2))[:90]) }, corrupt: -1},
		{name: "index of another segment", damage: func(d *disk) { d.write(index(2), d.read(index(1))) }, corrupt: -1},
		{name: "stale index", damage: func(d *disk) {
			x, err := readIndex(d.fs, index(1), bases[1], testIncarnation)
			if err != nil {
				t.Fatal(err)
			}
			x.next -= 3
			d.write(index(1), appendIndex(nil, bases[1], testIncarnation, x))
		}, corrupt: -1},
		{name: "index of what retention removed", damage: func(d *disk) { d.remove(segment(0)) }, corrupt: -1},
		{name: "unfinished files", damage: func(d *disk) {
			d.write(diskDir+"/"+newSegment, garbage)
			d.write(diskDir+"/prepared-3.tmp", garbage)
			d.write(index(1)+".tmp", garbage)
		}, corrupt: -1},
		{name: "foreign files", damage: func(d *disk) { d.write(diskDir+"/README", garbage) }, corrupt: -1},
		{name: "newest segment missing after a crash", damage: func(d *disk) { d.remove(segment(n - 1)) }, corrupt: -1, next: bases[n-1], onlyAt: "crashed"},
		{name: "newest segment missing after a close", damage: func(d *disk) { d.remove(segment(n - 1)) }, corrupt: n - 2, reason: "had been durable", onlyAt: "closed"},
		{name: "newest two missing but an index left", damage: func(d *disk) { d.remove(segment(n - 1)); d.remove(segment(n - 2)) }, corrupt: n - 3, reason: "had been durable"},
		{name: "all segments missing but indexes", damage: func(d *disk) {
			for i := range n {
				d.remove(segment(i))
			}
		}, corrupt: 0, reason: "it is missing"},
		{name: "middle segment missing", damage: func(d *disk) { d.remove(segment(1)) }, corrupt: 0, reason: "the next segment begins at"},
		{name: "empty segment behind", damage: func(d *disk) { d.write(d.path(1000, segmentSuffix), nil) }, corrupt: n - 1, reason: "the next segment begins at"},
		{name: "segment with a hole before it", damage: func(d *disk) {
			d.write(d.path(1000, segmentSuffix), encodeSegmentHeader(segmentHeader{base: 1000, incarnation: testIncarnation}))
		}, corrupt: n - 1, reason: "the next segment begins at"},
		{name: "segment inside another", damage: func(d *disk) {
			d.write(d.path(bases[1]+2, segmentSuffix), encodeSegmentHeader(segmentHeader{base: bases[1] + 2, incarnation: testIncarnation}))
		}, corrupt: 1, reason: "the next segment begins at"},
	}
	for _, test := range tests {
		for at, from := range map[string]*disk{"closed": closed, "crashed": crashed} {
			if test.onlyAt != "" && test.onlyAt != at {
				continue
			}
			t.Run(test.name+"/"+at, func(t *testing.T) {
				image := &disk{t: t, fs: from.fs.CrashImage(faultfs.Keep, 1)}
				test.damage(image)
				segments := image.bases(segmentSuffix)
				for range 3 { // however often it is tried
					l, rec := mustOpen(t, image.config())
					if test.corrupt >= 0 {
						if rec.Corruption == nil || rec.Corruption.Segment != bases[test.corrupt] || !strings.Contains(rec.Corruption.Reason, test.reason) {
							t.Fatalf("recovery: %+v (%v)", rec, rec.Corruption)
						}
						if rec.Corruption.Offset > l.Oldest() || len(segments) > 0 {
							checkReadOnlyUpTo(t, l, rec.Corruption.Offset)
						}
						mustClose(t, l)
						if got := image.bases(segmentSuffix); !slices.Equal(got, segments) {
							t.Fatalf("segments were %v and are %v", segments, got)
						}
						continue
					}
					next := uint64(150)
					if test.next != 0 {
						next = test.next
					}
					if rec.ReadOnly != nil || rec.Next != next || rec.Oldest != segments[0] {
						t.Fatalf("recovery: %+v, want next %d", rec, next)
					}
					for from := rec.Oldest; from < next; from += 11 {
						checkDense(t, l, from, next)
					}
					mustClose(t, l)
				}
				if test.corrupt < 0 && !strings.HasPrefix(test.name, "foreign") {
					l, _ := mustOpen(t, image.config())
					mustAppend(t, l, batch(l.Next(), 1, 10))
					mustClose(t, l)
					rep, err := Inspect(image.fs, diskDir)
					if err != nil || rep.Verdict != VerdictClean || len(rep.Notes) != 0 {
						t.Fatalf("inspection: %+v, %v", rep, err)
					}
				}
			})
		}
	}
}
