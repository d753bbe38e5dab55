//go:build chaos

package chaos

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"felix.dev/felix/broker/vfs"
)

// disk is the real file system with faults: flushes that are slow, hang or fail, and no room. Package faultfs has more of them,
// and keeps all in memory: a cluster under load needs too much of that.
type disk struct {
	vfs.FS

	mu sync.Mutex
	// All guarded by mu.
	delay  time.Duration // of each flush
	hang   chan struct{} // closed when flushes go on; nil: they do
	full   bool
	fails  int                    // how many flushes fail
	only   func(name string) bool // which files all of it is for; nil: all
	failed int                    // how many flushes did fail
	hung   int                    // how many did hang
}

func newDisk() *disk { return &disk{FS: vfs.OS} }

// slow delays each flush.
func (d *disk) slow(by time.Duration) { d.set(func() { d.delay = by }) }

// stuck has flushes hang until heal.
func (d *disk) stuck() {
	d.set(func() {
		if d.hang == nil {
			d.hang = make(chan struct{})
		}
	})
}

// fill has everything that needs room fail until heal.
func (d *disk) fill() { d.set(func() { d.full = true }) }

// failFlush has the next flush of a file fail whose name contains part.
func (d *disk) failFlush(part string) {
	d.set(func() { d.fails, d.only = 1, func(name string) bool { return strings.Contains(name, part) } })
}

// heal ends every fault.
func (d *disk) heal() {
	d.set(func() {
		if d.hang != nil {
			close(d.hang)
		}
		d.delay, d.hang, d.full, d.fails, d.only = 0, nil, false, 0, nil
	})
}

func (d *disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// met counts the flushes that failed or hung.
func (d *disk) met() (failed, hung int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed, d.hung
}

// room says why something that needs room fails.
func (d *disk) room(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENOSPC}
	}
	return nil
}

// flush waits as long as a flush takes, and says why it fails.
func (d *disk) flush(name string) error {
	d.mu.Lock()
	if d.only != nil && !d.only(name) {
		d.mu.Unlock()
		return nil
	}
	delay, hang := d.delay, d.hang
	if hang != nil {
		d.hung++
	}
	var err error
	if d.fails > 0 {
		d.fails--
		d.failed++
		err = &fs.PathError{Op: "fdatasync", Path: name, Err: syscall.EIO}
	}
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	return err
}

func (d *disk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := d.room("open", name); err != nil {
			return nil, err
		}
	}
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, d: d}, nil
}

func (d *disk) MkdirAll(name string, perm fs.FileMode) error {
	if _, err := d.Stat(name); err != nil {
		if err := d.room("mkdir", name); err != nil {
			return err
		}
	}
	return d.FS.MkdirAll(name, perm)
}

type diskFile struct {
	vfs.File

	d *disk
}

func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.d.room("write", f.Name()); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

func (f *diskFile) Truncate(size int64) error {
	if now, err := f.Size(); err == nil && size > now {
		if err := f.d.room("truncate", f.Name()); err != nil {
			return err
		}
	}
	return f.File.Truncate(size)
}

func (f *diskFile) Datasync() error {
	if err := f.d.flush(f.Name()); err != nil {
		return err
	}
	return f.File.Datasync()
}
