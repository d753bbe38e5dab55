package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is the file system as the broker's storage sees it. Names are paths in the
// form of package filepath; flags are those of package os.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Rename(oldName, newName string) error
	Remove(name string) error
	MkdirAll(name string, perm fs.FileMode) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names inside a directory durable.
	SyncDir(name string) error
	// Link gives a file a second name.
	Link(oldName, newName string) error
}

// File is an open file. Its methods may be called concurrently; two writes that
// overlap are the caller's mistake.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Datasync flushes the file's bytes and, where it changed, its size.
	Datasync() error
	Truncate(size int64) error
	Size() (int64, error)
	// Name is the name the file was opened by; a later rename doesn't change it.
	Name() string
}

// TempSuffix ends the name of every file that WriteFileAtomic has not finished.
// Who owns a directory may remove such files when it is opened.
const TempSuffix = ".tmp"

// ReadFile returns the whole content of a file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written: there is nothing to lose
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// WriteFileAtomic replaces name by a file with the given content: after a crash
// at any moment either the old content or the new one is there, complete. When
// it returns nil, the new one is durable, and so is its name.
//
// Callers that may write the same name at once must hold a lock of their own.
func WriteFileAtomic(fsys FS, name string, data []byte, perm fs.FileMode) error {
	if err := WriteFileSynced(fsys, name, data, perm); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// WriteFileSynced is WriteFileAtomic without the last step: content and name
// change together, but the name becomes durable only with the next SyncDir. It is
// for callers that change several names and sync their directory once.
func WriteFileSynced(fsys FS, name string, data []byte, perm fs.FileMode) error {
	return replaceFile(fsys, name, data, perm, true)
}

// WriteFileUnsynced is for files that may be lost or torn by a power cut because
// they can be rebuilt: the content is complete as long as the machine stays up.
func WriteFileUnsynced(fsys FS, name string, data []byte, perm fs.FileMode) error {
	return replaceFile(fsys, name, data, perm, false)
}

func replaceFile(fsys FS, name string, data []byte, perm fs.FileMode, sync bool) error {
	tmp := name + TempSuffix
	if err := writeTemp(fsys, tmp, data, perm, sync); err != nil {
		_ = fsys.Remove(tmp) // best effort: who opens the directory removes it too
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		_ = fsys.Remove(tmp)
		return err
	}
	return nil
}

func writeTemp(fsys FS, tmp string, data []byte, perm fs.FileMode, sync bool) error {
	f, err := fsys.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	if sync {
		if err := f.Datasync(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// MkdirAllSync creates a directory and its missing parents, and makes all their
// names durable, also those that were there already: who created them may have
// died, or met an error, before it had synced them.
func MkdirAllSync(fsys FS, dir string, perm fs.FileMode) error {
	dir = filepath.Clean(dir)
	created := 0 // directories at the end of the path that are new
	for d := dir; ; d = filepath.Dir(d) {
		info, err := fsys.Stat(d)
		if err == nil && !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: d, Err: fmt.Errorf("%w and is not a directory", fs.ErrExist)}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		created++
		if filepath.Dir(d) == d {
			break
		}
	}
	if created > 0 {
		if err := fsys.MkdirAll(dir, perm); err != nil {
			return err
		}
	}
	for d := dir; filepath.Dir(d) != d; d = filepath.Dir(d) {
		err := fsys.SyncDir(filepath.Dir(d))
		if created <= 0 && d != dir && foreign(err) {
			break
		}
		if err != nil {
			return err
		}
		created--
	}
	return nil
}

// foreign says that a directory is one that this program doesn't write to: its names
// are somebody else's to keep.
func foreign(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL)
}

// IsFull says whether an operation failed because the disk, or a quota, has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsReadOnly says whether an operation failed because the file system takes no writes.
func IsReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
