package wal

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

var update = flag.Bool("update", false, "write the golden files of the current format version")

// goldenLog writes the log whose files are the golden ones: every kind of record, and
// two files. Its content must not change within a format version.
func goldenLog(t *testing.T) *faultfs.FS {
	t.Helper()
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 512
	cfg.random = bytes.NewReader([]byte("identity of log!nonce 01nonce 02nonce 03"))
	l, _ := mustOpen(t, cfg)
	j, e := mustJournal(t, l, "shard/00/0"), mustEntries(t, l, "raft/1")
	do(t, put(j, 40, 42, []byte("bytes of a journal")))
	do(t, e.Append(entryRange(1, 3, 1, 20)))
	j.Release(42)
	do(t, put(j, 42, 43, []byte("more of them")))
	do(t, e.TruncateFrom(3))
	do(t, e.Append(entryRange(3, 4, 2, 40)))
	do(t, e.TruncateTo(2))
	do(t, j.Discard())
	do(t, put(j, 7, 8, []byte("offsets again")))
	gone := mustEntries(t, l, "raft/2")
	do(t, gone.Append(entryRange(9, 9, 1, 5)))
	do(t, gone.Forget())
	mustClose(t, l)
	return fsys
}

func goldenDir(version int) string { return filepath.Join("testdata", fmt.Sprintf("v%d", version)) }

// What this program writes is byte for byte what the format's description and its
// golden files say.
func TestGoldenFilesAreWritten(t *testing.T) {
	fsys := goldenLog(t)
	entries, err := fsys.ReadDir(testDir)
	do(t, err)
	dir := goldenDir(formatVersion)
	if *update {
		do(t, os.RemoveAll(dir))
		do(t, os.MkdirAll(dir, 0o750))
	}
	var want, have []string
	for _, entry := range entries {
		have = append(have, filepath.Join(dir, entry.Name()+".hex"))
		got := hex.Dump(content(t, fsys, filepath.Join(testDir, entry.Name())))
		if *update {
			do(t, os.WriteFile(have[len(have)-1], []byte(got), 0o600))
		}
		golden, err := os.ReadFile(have[len(have)-1])
		do(t, err)
		if diff := cmp.Diff(string(golden), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", entry.Name(), diff)
		}
	}
	want, err = filepath.Glob(filepath.Join(dir, "*"))
	do(t, err)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The golden files of every version are read for what they hold.
func TestGoldenFilesAreRead(t *testing.T) {
	for version := 1; version <= formatVersion; version++ {
		files, err := filepath.Glob(filepath.Join(goldenDir(version), "*.hex"))
		do(t, err)
		if len(files) == 0 {
			t.Fatalf("version %d has no golden files", version)
		}
		fsys := faultfs.New(1)
		do(t, vfs.MkdirAllSync(fsys, testDir, dirPerm))
		for _, path := range files {
			dump, err := os.ReadFile(path)
			do(t, err)
			do(t, vfs.WriteFileAtomic(fsys, filepath.Join(testDir, strings.TrimSuffix(filepath.Base(path), ".hex")), undump(t, string(dump)), filePerm))
		}
		l, rec := mustOpen(t, testConfig(fsys))
		if diff := cmp.Diff([]string{"shard/00/0"}, rec.Journals); diff != "" {
			t.Errorf("journals (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"raft/1"}, rec.Entries); diff != "" {
			t.Errorf("stores (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]piece{{7, 8, "offsets again"}}, replayed(t, mustJournal(t, l, "shard/00/0"))); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
		want := append(entryRange(2, 2, 1, 20), entryRange(3, 4, 2, 40)...)
		if diff := cmp.Diff(want, all(t, mustEntries(t, l, "raft/1"))); diff != "" {
			t.Errorf("store (-want +got):\n%s", diff)
		}
	}
}

// undump reverses hex.Dump.
func undump(t *testing.T, dump string) (out []byte) {
	t.Helper()
	for line := range strings.Lines(dump) {
		if len(line) < 60 {
			continue
		}
		b, err := hex.DecodeString(strings.Join(strings.Fields(line[9:58]), ""))
		do(t, err)
		out = append(out, b...)
	}
	return out
}

// A file of another version is refused, and nothing is changed.
func TestAnotherVersionIsRefused(t *testing.T) {
	fsys := goldenLog(t)
	path := filepath.Join(testDir, fileName(1))
	b := content(t, fsys, path)
	b[9] = formatVersion + 1
	h := fileHeader{}
	copy(b[60:], encodeFileHeader(&h)[60:]) // a wrong checksum: damage, not a version
	do(t, vfs.WriteFileAtomic(fsys, path, b, filePerm))
	if _, _, err := Open(testConfig(fsys)); mustBe(ErrFormat, err) == nil {
		t.Errorf("a damaged header counts as another version: %v", err)
	}
	resealHeader(b)
	do(t, vfs.WriteFileAtomic(fsys, path, b, filePerm))
	if _, _, err := Open(testConfig(fsys)); mustBe(ErrFormat, err) != nil {
		t.Errorf("another version: %v", err)
	}
	if diff := cmp.Diff(b, content(t, fsys, path)); diff != "" {
		t.Error("the file was changed")
	}
}
