package catalog

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"felix.dev/felix/broker/vfs"
)

// failing is a file system whose n-th changing operation fails, and all of them
// from there on if stays is set.
type failing struct {
	vfs.FS
	err   error
	n     int // operations until the failure; negative: none fails
	stays bool
	ops   int // done so far
}

func (f *failing) step() error {
	f.ops++
	switch {
	case f.n < 0:
		return nil
	case f.n == 0:
		if !f.stays {
			f.n = -1
		}
		return f.err
	}
	f.n--
	return nil
}

// OpenFile fails for files that are to be written.
func (f *failing) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag != os.O_RDONLY {
		if err := f.step(); err != nil {
			return nil, err
		}
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	return &failingFile{file, f}, err
}

// Rename fails on demand.
func (f *failing) Rename(a, b string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Rename(a, b)
}

// SyncDir fails on demand.
func (f *failing) SyncDir(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type failingFile struct {
	vfs.File
	fs *failing
}

// WriteAt writes half of what it is given before it fails.
func (f *failingFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.step(); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.File.WriteAt(p, off)
}

// Datasync fails on demand.
func (f *failingFile) Datasync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	return f.File.Datasync()
}

// Whichever operation of a change fails, the change has not happened: not for
// readers, not after a restart; and the next one succeeds.
func TestFailedChangeHasNotHappened(t *testing.T) {
	changes := map[string]func(*Catalog) error{
		"create":  func(c *Catalog) error { _, _, err := c.Create(spec("new"), "r"); return err },
		"delete":  func(c *Catalog) error { _, err := c.Delete(name("old"), []uint64{9}); return err },
		"reserve": func(c *Catalog) error { _, err := c.Reserve(name("mem"), 0, 1000); return err },
		"update": func(c *Catalog) error {
			_, err := c.Update(name("old"), Change{Retention: &Retention{MaxBytes: 7}})
			return err
		},
	}
	for what, change := range changes {
		for _, errno := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO} {
			for n := range 5 { // create, write, sync, rename, sync of the directory
				cfg := testConfig(t)
				disk := &failing{FS: vfs.OS, err: errno, n: -1}
				cfg.FS = disk
				c := open(t, cfg)
				create(t, c, spec("old"))
				create(t, c, memory("mem", 1))
				before := open(t, cfg)

				disk.n = n
				err := change(c)
				var write *WriteError
				if !errors.As(err, &write) || !errors.Is(err, errno) {
					t.Fatalf("%s, operation %d: got %v", what, n, err)
				}
				same(t, c, before)
				same(t, open(t, cfg), before)

				if err := change(c); err != nil {
					t.Fatalf("%s, after operation %d had failed: %v", what, n, err)
				}
				same(t, open(t, cfg), c)
			}
		}
	}
}

// B58, B93: a disk that stays full or read-only stops changes and nothing else,
// and they work again without a restart.
func TestDiskThatStaysFull(t *testing.T) {
	cfg := testConfig(t)
	disk := &failing{FS: vfs.OS, err: syscall.ENOSPC, n: -1}
	cfg.FS = disk
	c := open(t, cfg)
	create(t, c, spec("s"))
	for n := range 5 {
		disk.n, disk.stays = n, true
		for range 3 {
			if _, err := c.Delete(name("s"), []uint64{1}); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v", err)
			}
			if _, err := c.Get(name("s")); err != nil {
				t.Fatal(err)
			}
		}
		// It can be opened as well.
		open(t, cfg)
	}
	disk.n = -1
	create(t, c, spec("more"))
	same(t, open(t, cfg), c)
}

func TestOpenWritesNothing(t *testing.T) {
	cfg := testConfig(t)
	create(t, open(t, cfg), memory("m", 1))
	disk := &failing{FS: vfs.OS, n: -1}
	cfg.FS = disk
	open(t, cfg)
	if disk.ops != 0 {
		t.Errorf("got %d operations", disk.ops)
	}
}
