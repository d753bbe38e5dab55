package faultfs

import (
	"io"
	"io/fs"
	"syscall"
)

const sectorLen = 512

// file is an open file.
type file struct {
	fs       *FS
	node     *node
	name     string
	writable bool
	closed   bool
	failures int // of node, as far as this handle has told
}

func (f *file) Name() string { return f.name }

// enter is FS.enter for an open file; it returns with the file system's mu held.
func (f *file) enter(op Op) (*Fault, error) {
	fault := f.fs.enter(op, f.name)
	if f.closed {
		return nil, pathErr(op, f.name, fs.ErrClosed)
	}
	return fault, nil
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	fault, err := f.enter(OpRead)
	defer f.fs.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if fault != nil {
		return 0, pathErr(OpRead, f.name, fault.Err)
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	fault, err := f.enter(OpWrite)
	defer f.fs.mu.Unlock()
	if err != nil {
		return 0, err
	}
	switch {
	case fault != nil:
		b, err = b[:min(fault.Bytes, len(b))], fault.Err
	case !f.writable:
		b, err = nil, syscall.EBADF
	case f.fs.readOnly:
		b, err = nil, syscall.EROFS
	case f.fs.space >= 0:
		if grow := off + int64(len(b)) - int64(len(f.node.data)); grow > 0 {
			if over := grow - (f.fs.space - f.fs.used()); over > 0 {
				b, err = b[:max(int64(len(b))-over, 0)], syscall.ENOSPC
			}
		}
	}
	if len(b) > 0 {
		f.node.write(b, off)
		if f.fs.writeback > 0 && f.fs.rng.Float64() < f.fs.writeback {
			f.node.writeBack(f.fs.rng)
		}
	}
	if err != nil {
		return len(b), pathErr(OpWrite, f.name, err)
	}
	return len(b), nil
}

func (f *file) Truncate(size int64) error {
	fault, err := f.enter(OpTruncate)
	defer f.fs.mu.Unlock()
	switch {
	case err != nil:
		return err
	case fault != nil:
		return pathErr(OpTruncate, f.name, fault.Err)
	case !f.writable:
		return pathErr(OpTruncate, f.name, syscall.EINVAL)
	case f.fs.readOnly:
		return pathErr(OpTruncate, f.name, syscall.EROFS)
	}
	f.node.truncate(size)
	return nil
}

func (f *file) Datasync() error {
	fault, err := f.enter(OpDatasync)
	defer f.fs.mu.Unlock()
	if err != nil {
		return err
	}
	if fault == nil && f.fs.readOnly && (len(f.node.dirty) > 0 || len(f.node.data) != len(f.node.disk)) {
		fault = &Fault{Err: syscall.EROFS}
	}
	if fault != nil {
		clear(f.node.dirty)
		f.node.failures++
		f.failures = f.node.failures
		return pathErr(OpDatasync, f.name, fault.Err)
	}
	f.node.flush()
	if f.failures < f.node.failures { // met by another handle
		f.failures = f.node.failures
		return pathErr(OpDatasync, f.name, syscall.EIO)
	}
	return nil
}

func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return 0, pathErr(OpStat, f.name, fs.ErrClosed)
	}
	return int64(len(f.node.data)), nil
}

func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	f.fs.open--
	return nil
}
