package seglog

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

var update = flag.Bool("update", false, "write the golden files of the current format version")

// goldenLog writes the log whose files are the golden ones: every kind of record and
// every kind of file. Its content must not change within a format version.
func goldenLog(t *testing.T) *disk {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.SegmentBytes, cfg.IndexEvery, cfg.First, cfg.Committed = 600, 150, 40, c.report
	cfg.Now = func() time.Time { return time.UnixMicro(1_700_000_000_000_000) }
	cfg.RestoreState, cfg.SnapshotState = func([]byte) error { return nil }, func() []byte { return []byte("owner's state") }
	l, _ := mustOpen(t, cfg)
	for _, recs := range [][]Record{
		{batch(40, 1, 20), generation(41)},
		{withProducer(batch(42, 3, 15), 0x0102030405060708, 9)},
		{batch(45, 2, 60)},
		{withProducer(generation(47), 1, 2), batch(48, 1, 0)},
		{batch(49, 1, 100)},
		{batch(50, 2, 30)},
	} {
		mustAppend(t, l, recs...)
		if err := c.wait(l.Next()); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	return d
}

func goldenDir(version int) string { return filepath.Join("testdata", fmt.Sprintf("v%d", version)) }

// What this program writes is byte for byte what the format's description and its
// golden files say.
func TestGoldenFilesAreWritten(t *testing.T) {
	d := goldenLog(t)
	entries, err := d.fs.ReadDir(diskDir)
	if err != nil {
		t.Fatal(err)
	}
	dir := goldenDir(formatVersion)
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	var written []string
	for _, e := range entries {
		written = append(written, e.Name()+".hex")
		got := hex.Dump(d.read(diskDir + "/" + e.Name()))
		path := filepath.Join(dir, e.Name()+".hex")
		if *update {
			mustWrite(t, path, []byte(got))
		}
		if diff := cmp.Diff(string(mustRead(t, path)), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Name(), diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	slices.Sort(written)
	if diff := cmp.Diff(files, written); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Every version that there ever was can be read.
func TestGoldenFilesAreRead(t *testing.T) {
	for version := 1; version <= formatVersion; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			d := &disk{t: t, fs: faultfs.New(1)}
			if err := d.fs.MkdirAll(diskDir, 0o750); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(goldenDir(version), "*.hex"))
			if err != nil || len(files) < 4 {
				t.Fatalf("golden files %v, %v", files, err)
			}
			for _, file := range files {
				name := filepath.Base(file)
				d.write(diskDir+"/"+name[:len(name)-len(".hex")], undump(t, mustRead(t, file)))
			}
			rep, err := Inspect(d.fs, diskDir)
			if err != nil || rep.Verdict != VerdictClean || rep.Incarnation != testIncarnation || rep.Oldest != 40 || rep.Next != 52 {
				t.Fatalf("inspection: %+v, %v", rep, err)
			}
			var state string
			var seen []Record
			cfg := d.config()
			cfg.First = 40
			cfg.RestoreState = func(b []byte) error { state = string(b); return nil }
			cfg.OnRecover = func(r Record) { r.Frame = bytes.Clone(r.Frame); seen = append(seen, r) }
			l, rec := mustOpen(t, cfg)
			if rec.Next != 52 || rec.Oldest != 40 || rec.ReadOnly != nil || state != "owner's state" {
				t.Fatalf("recovery: %+v, state %q", rec, state)
			}
			if diff := cmp.Diff([]Record{withProducer(generation(47), 1, 2), batch(48, 1, 0), batch(49, 1, 100), batch(50, 2, 30)}, seen); diff != "" {
				t.Errorf("last segment's records (-want +got):\n%s", diff)
			}
			evs, err := readAll(l, 40, 1000)
			if err != nil {
				t.Fatal(err)
			}
			var want []event
			for _, o := range []uint64{40, 42, 43, 44, 45, 46, 48, 49, 50, 51} {
				e := event{offset: o}
				if o == 42 || o == 48 {
					e.skipped = 1
				}
				want = append(want, e)
			}
			if diff := cmp.Diff(want, evs, cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// undump is the inverse of hex.Dump.
func undump(t *testing.T, dump []byte) []byte {
	t.Helper()
	var out []byte
	for line := range bytes.Lines(dump) {
		if len(line) < 60 {
			continue
		}
		b, err := hex.DecodeString(string(bytes.ReplaceAll(line[10:58], []byte(" "), nil)))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, b...)
	}
	return out
}
