package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

// each runs a test against the real file system and the one for tests: what one
// promises, the other must.
func each(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, vfs.OS, t.TempDir()) })
	t.Run("faultfs", func(t *testing.T) { test(t, faultfs.New(1), "/") })
}

func TestFile(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		if _, err := fsys.OpenFile(name, os.O_RDWR, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("open a file that isn't there: %v", err)
		}
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("create it again: %v", err)
		}
		if n, err := f.WriteAt([]byte("hello"), 3); n != 5 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
		b := make([]byte, 10)
		n, err := f.ReadAt(b, 0)
		if got := string(b[:n]); got != "\x00\x00\x00hello" || !errors.Is(err, io.EOF) {
			t.Fatalf("read %q, %v", got, err)
		}
		if err := f.Truncate(4); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(6); err != nil {
			t.Fatal(err)
		}
		if size, err := f.Size(); size != 6 || err != nil {
			t.Fatalf("size %d, %v", size, err)
		}
		if err := f.Datasync(); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Rename(name, name+"2"); err != nil {
			t.Fatal(err)
		}
		if f.Name() != name {
			t.Errorf("name %q, want the one it was opened by", f.Name())
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Datasync(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("datasync after close: %v", err)
		}
		got, err := vfs.ReadFile(fsys, name+"2")
		if string(got) != "\x00\x00\x00h\x00\x00" || err != nil {
			t.Fatalf("content %q, %v", got, err)
		}
	})
}

func TestDirectory(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		deep := filepath.Join(dir, "a", "b", "c")
		for range 2 { // the second time it is all there
			if err := vfs.MkdirAllSync(fsys, deep, 0o750); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"y", "x"} {
			if err := vfs.WriteFileAtomic(fsys, filepath.Join(deep, name), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := vfs.WriteFileUnsynced(fsys, filepath.Join(deep, "x"), []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Link(filepath.Join(deep, "x"), filepath.Join(deep, "z")); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Remove(filepath.Join(deep, "x")); err != nil {
			t.Fatal(err)
		}
		entries, err := fsys.ReadDir(deep)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if diff := cmp.Diff([]string{"y", "z"}, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		if got, err := vfs.ReadFile(fsys, filepath.Join(deep, "z")); string(got) != "new" || err != nil {
			t.Errorf("the link holds %q, %v", got, err)
		}
		if err := fsys.Remove(deep); err == nil {
			t.Error("a directory that isn't empty was removed")
		}
		if info, err := fsys.Stat(deep); err != nil || !info.IsDir() {
			t.Errorf("stat: %v, %v", info, err)
		}
		if err := vfs.MkdirAllSync(fsys, filepath.Join(deep, "y", "no"), 0o750); err == nil {
			t.Error("a directory was made below a file")
		}
		if err := fsys.SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("sync of a directory that isn't there: %v", err)
		}
	})
}

func TestWriteFileAtomicFailures(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpOpen, faultfs.OpWrite, faultfs.OpDatasync, faultfs.OpRename, faultfs.OpSyncDir} {
		t.Run(op.String(), func(t *testing.T) {
			fsys := faultfs.New(1)
			if err := vfs.WriteFileAtomic(fsys, "/f", []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			fsys.Inject(faultfs.Fault{Op: op, Bytes: 1})
			if err := vfs.WriteFileAtomic(fsys, "/f", []byte("new"), 0o600); err == nil {
				t.Fatal("it succeeded")
			}
			for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Keep, faultfs.Random} {
				got, err := vfs.ReadFile(fsys.CrashImage(policy, 1), "/f")
				if err != nil || (string(got) != "old" && (string(got) != "new" || op != faultfs.OpSyncDir)) {
					t.Errorf("after a crash: %q, %v", got, err)
				}
			}
			if entries, err := fsys.ReadDir("/"); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
			if n := fsys.OpenFiles(); n != 0 {
				t.Errorf("%d files are open", n)
			}
		})
	}
}
