package vfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// datasync leaves out what fsync adds (the file's times): on a segment that was
// filled with zeros before, it then needs no journal commit.
func datasync(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = raw.Control(func(fd uintptr) {
		for {
			syncErr = syscall.Fdatasync(int(fd))
			if !errors.Is(syncErr, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil { // only a closed file is refused here
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: fmt.Errorf("%w: %w", os.ErrClosed, err)}
	}
	if syncErr != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: syncErr}
	}
	return nil
}
