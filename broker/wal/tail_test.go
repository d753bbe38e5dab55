package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

// written makes a log of one file with ten batches of one entry and returns where each
// begins, and where the last ends.
func written(t *testing.T) (fsys *faultfs.FS, path string, at []int64) {
	t.Helper()
	fsys = faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 1 << 20
	l, _ := mustOpen(t, cfg)
	e := mustEntries(t, l, "e")
	for i := range uint64(10) {
		at = append(at, l.active.end.Load())
		do(t, e.Append(entryRange(i+1, i+1, 1, 30)))
	}
	at = append(at, l.active.end.Load())
	mustClose(t, l)
	return fsys, l.path(1), at
}

func content(t *testing.T, fsys *faultfs.FS, path string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fsys, path)
	do(t, err)
	return b
}

// B40: the last batch is cut off after every one of its bytes, or what follows is
// zeros: what is before is there, and the log goes on.
func TestTornTail(t *testing.T) {
	fsys, path, at := written(t)
	for cut := at[9]; cut < at[10]; cut++ {
		for _, zeros := range []bool{false, true} {
			image := fsys.CrashImage(faultfs.Keep, 1)
			b := content(t, image, path)[:cut]
			if zeros {
				b = append(b, make([]byte, 5000)...)
			}
			do(t, vfs.WriteFileAtomic(image, path, b, filePerm))
			l, rec := mustOpen(t, testConfig(image))
			e := mustEntries(t, l, "e")
			if diff := cmp.Diff(entryRange(1, 9, 1, 30), all(t, e)); diff != "" {
				t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
			}
			if torn := cut >= at[9]+batchHeaderLen; torn != (rec.Cut != nil) {
				t.Fatalf("cut at %d: %+v", cut, rec.Cut)
			}
			do(t, e.Append(entryRange(10, 11, 2, 5)))
			mustClose(t, l)
			l, rec = mustOpen(t, testConfig(image))
			want := append(entryRange(1, 9, 1, 30), entryRange(10, 11, 2, 5)...)
			if diff := cmp.Diff(want, all(t, mustEntries(t, l, "e"))); diff != "" || rec.Cut != nil {
				t.Fatalf("cut at %d, gone on (-want +got):\n%s\n%+v", cut, diff, rec.Cut)
			}
			mustClose(t, l)
		}
	}
}

// Damage anywhere but in the last batch is told, and nothing is changed.
func TestDamage(t *testing.T) {
	fsys, path, at := written(t)
	for pos := int64(0); pos < at[10]; pos += 3 {
		image := fsys.CrashImage(faultfs.Keep, 1)
		b := content(t, image, path)
		b[pos] ^= 0x10
		do(t, vfs.WriteFileAtomic(image, path, b, filePerm))
		before := image.Counts()
		l, rec, err := Open(testConfig(image))
		if pos >= at[9] { // as after a crash
			if err != nil || rec.Entries == nil {
				t.Fatalf("byte %d: %v", pos, err)
			}
			mustClose(t, l)
			continue
		}
		bad, ok := errors.AsType[*CorruptionError](err)
		if !ok || bad.File != path || bad.Pos > pos {
			t.Fatalf("byte %d: %v", pos, err)
		}
		if diff := cmp.Diff(string(b), string(content(t, image, path))); diff != "" {
			t.Fatalf("byte %d: the file was changed", pos)
		}
		if after := image.Counts(); after.Of(faultfs.OpWrite) != before.Of(faultfs.OpWrite) || after.Of(faultfs.OpRemove) != before.Of(faultfs.OpRemove) {
			t.Fatalf("byte %d: something was written", pos)
		}
		if n := image.OpenFiles(); n != 0 {
			t.Fatalf("byte %d: %d files stay open", pos, n)
		}
	}
}

// A file that is missing, one of another log, one of a later version.
func TestFilesThatDoNotBelong(t *testing.T) {
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 300
	l, _ := mustOpen(t, cfg)
	e := mustEntries(t, l, "e")
	for i := range uint64(10) {
		do(t, e.Append(entryRange(i+1, i+1, 1, 100)))
	}
	mustClose(t, l)
	if len(l.files) < 4 {
		t.Fatalf("%d files", len(l.files))
	}
	header := func(change func(h *fileHeader)) func(*faultfs.FS) {
		return func(image *faultfs.FS) {
			b := content(t, image, l.path(2))
			h, err := parseFileHeader(b)
			do(t, err)
			change(&h)
			copy(b, encodeFileHeader(&h))
			do(t, vfs.WriteFileAtomic(image, l.path(2), b, filePerm))
		}
	}
	for _, c := range []struct {
		name    string
		damage  func(image *faultfs.FS)
		corrupt bool
	}{
		{"missing", func(image *faultfs.FS) { do(t, image.Remove(l.path(2))) }, true},
		{"of another log", header(func(h *fileHeader) { h.log[3]++ }), false},
		{"another number", header(func(h *fileHeader) { h.number++ }), true},
		{"another first batch", header(func(h *fileHeader) { h.first++ }), true},
		{"empty", func(image *faultfs.FS) { do(t, vfs.WriteFileAtomic(image, l.path(2), nil, filePerm)) }, true},
		{"short", func(image *faultfs.FS) {
			do(t, vfs.WriteFileAtomic(image, l.path(2), content(t, image, l.path(2))[:fileHeaderLen], filePerm))
		}, true},
	} {
		image := fsys.CrashImage(faultfs.Keep, 1)
		c.damage(image)
		_, _, err := Open(testConfig(image))
		if _, ok := errors.AsType[*CorruptionError](err); ok != c.corrupt || !ok && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What a recycled file held before is never taken for what it holds now.
func TestRecycledFile(t *testing.T) {
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 2000
	l, _ := mustOpen(t, cfg)
	e := mustEntries(t, l, "e")
	for i := range uint64(300) {
		do(t, e.Append(entryRange(i+1, i+1, 1, 100)))
		if i%5 == 4 {
			do(t, e.TruncateTo(i-2))
			eventually(t, "unneeded files are dropped", func() bool { return l.Stats().Files <= 2 })
		}
		image := fsys.CrashImage(faultfs.Drop, 1)
		again, rec := mustOpen(t, testConfig(image))
		if rec.Cut != nil {
			t.Fatalf("%+v", rec.Cut)
		}
		if diff := cmp.Diff(all(t, e), all(t, mustEntries(t, again, "e"))); diff != "" {
			t.Fatalf("entry %d (-want +got):\n%s", i, diff)
		}
		mustClose(t, again)
	}
	reused := 0
	names, err := fsys.ReadDir(testDir)
	do(t, err)
	for _, n := range names {
		if _, ok := parseName(n.Name()); !ok {
			reused++
		}
	}
	if dropped := l.Stats().Dropped; reused > maxSpares || dropped < 10 {
		t.Errorf("%d files dropped, %d to recycle: %s", dropped, reused, fmt.Sprint(names))
	}
}

// resealHeader makes the checksum of a changed file header right again.
func resealHeader(b []byte) {
	binary.BigEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}
