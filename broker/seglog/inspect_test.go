package seglog

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

func TestInspect(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.SegmentBytes, cfg.First, cfg.Committed = 1<<10, 100, c.report
	cfg.RestoreState, cfg.SnapshotState = func([]byte) error { return nil }, func() []byte { return []byte("s") }
	l, _ := mustOpen(t, cfg)
	mustAppend(t, l, batch(100, 2, 200), generation(102), batch(103, 1, 100))
	mustAppend(t, l, batch(104, 1, 500))
	mustAppend(t, l, batch(105, 1, 100))
	if err := c.wait(106); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	crashed := d.copy()
	crashed.remove(diskDir + "/" + markName)
	before := d.snapshot()
	micros := func(offset int64) time.Time { return time.UnixMicro(1_700_000_000_000_000 + offset) }
	size := func(base uint64) int64 { return int64(len(d.read(d.path(base, segmentSuffix)))) }
	want := Report{
		Dir: diskDir, Incarnation: testIncarnation, Oldest: 100, Next: 106, Records: 5, Bytes: size(100) + size(104),
		Segments: []SegmentReport{
			{Base: 100, Next: 104, Records: 3, Hidden: 1, Bytes: size(100), FileBytes: size(100), Oldest: micros(100), Newest: micros(103), IndexOK: true},
			{Base: 104, Next: 106, Records: 2, Bytes: size(104), FileBytes: size(104), Oldest: micros(104), Newest: micros(105), IndexOK: true, StateOK: true},
		},
	}
	got, err := Inspect(d.fs, diskDir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clean (-want +got):\n%s", diff)
	}

	for name, c := range map[string]struct {
		damage  func(*disk)
		verdict Verdict
		problem string
		next    uint64
		note    string
	}{
		"torn": {
			damage: func(d *disk) {
				b := d.read(d.path(104, segmentSuffix))
				d.write(d.path(104, segmentSuffix), b[:len(b)-3])
			},
			verdict: VerdictRepairable, problem: "00000000000000000104.log torn at byte 636 (offset 105)", next: 105,
		},
		"sealed flipped": {
			damage:  func(d *disk) { d.flip(d.path(100, segmentSuffix), size(100)-1, 1) },
			verdict: VerdictRefused, problem: "00000000000000000100.log damaged", next: 103,
		},
		"torn and damaged": {
			damage: func(d *disk) {
				b := d.read(d.path(104, segmentSuffix))
				d.write(d.path(104, segmentSuffix), b[:len(b)-3])
				d.flip(d.path(100, segmentSuffix), 70, 1)
			},
			verdict: VerdictRefused, problem: "00000000000000000100.log damaged at byte 64 (offset 100)", next: 100,
		},
		"header": {
			damage:  func(d *disk) { d.flip(d.path(104, segmentSuffix), 3, 1) },
			verdict: VerdictRefused, problem: "00000000000000000104.log damaged at byte 0", next: 104,
		},
		"of another log": {
			damage: func(d *disk) {
				b := d.read(d.path(104, segmentSuffix))
				copy(b, encodeSegmentHeader(segmentHeader{base: 104, incarnation: [16]byte{1}}))
				d.write(d.path(104, segmentSuffix), b)
			},
			verdict: VerdictRefused, problem: "another log", next: 104,
		},
		"nothing left": {
			damage:  func(d *disk) { d.remove(d.path(100, segmentSuffix)); d.remove(d.path(104, segmentSuffix)) },
			verdict: VerdictRefused, problem: "there is no segment", next: 0,
		},
		"index": {damage: func(d *disk) { d.write(d.path(100, indexSuffix), nil) }, next: 106, note: "no good index"},
		"odds": {damage: func(d *disk) {
			d.write(diskDir+"/x.tmp", nil)
			d.write(d.path(7, stateSuffix), nil)
			d.write(diskDir+"/"+markName, []byte("?"))
			d.write(diskDir+"/README", nil)
		}, next: 106, note: "00000000000000000007.state belongs to no segment\nREADME is not the log's\ndurable.mark is damaged; it is not needed\nx.tmp is unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			image := &disk{t: t, fs: crashed.fs.CrashImage(faultfs.Keep, 0)}
			c.damage(image)
			before := image.snapshot()
			rep, err := Inspect(image.fs, diskDir)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Verdict != c.verdict || rep.Next != c.next {
				t.Errorf("verdict %s, next %d, want %s, %d", rep.Verdict, rep.Next, c.verdict, c.next)
			}
			problem := ""
			if rep.Problem != nil {
				problem = rep.Problem.String()
			}
			if !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
			if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") && c.verdict == VerdictClean {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if image.snapshot() != before {
				t.Error("the log was changed")
			}
		})
	}
	if d.snapshot() != before {
		t.Error("the log was changed")
	}
	if _, err := Inspect(d.fs, "/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("inspection of nothing: %v", err)
	}
	if v := Verdict(9).String(); v != "verdict 9" {
		t.Error(v)
	}
}
