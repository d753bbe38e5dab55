package wal

import (
	"errors"
	"fmt"

	"felix.dev/felix/broker/vfs"
)

var (
	// ErrDiskFull says that the disk (or a quota) had no room: nothing of the append
	// was kept, and the same append may succeed once there is room.
	ErrDiskFull = errors.New("wal: disk full")
	// ErrReadOnly says that the file system refuses writes for now: nothing of the
	// append was kept, and the same append may succeed once it is writable again.
	ErrReadOnly = errors.New("wal: file system is read-only")
	// ErrPoisoned says that a write or flush failed in a way that leaves unknown what
	// is on disk. It lasts until the log is opened again; the outcome of appends that
	// were told of it is unknown.
	ErrPoisoned = errors.New("wal: poisoned by an earlier write failure, until it is reopened")
	// ErrClosed says that Close was called. Trying again doesn't help.
	ErrClosed = errors.New("wal: closed")
	// ErrFormat says that a file is of another format or version, or of another log.
	// Nothing was changed.
	ErrFormat = errors.New("wal: not a file of this log")
	// ErrNotFound says that a store holds no entry with the index asked for.
	ErrNotFound = errors.New("wal: no such entry")
	// ErrGap says that an entry does not follow the last one. Trying again doesn't help.
	ErrGap = errors.New("wal: entry does not follow the last one")
)

// CorruptionError says that bytes which had been durable are no longer what was
// written. Trying again doesn't help; nothing is deleted because of it.
type CorruptionError struct {
	File   string
	Pos    int64
	Reason string
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("wal: %s is damaged at byte %d: %s", e.File, e.Pos, e.Reason)
}

// classify gives a failed write the error that tells the caller what to do next.
// final is true when the log can't go on: what is on disk is unknown.
func classify(op string, err error) (final bool, typed error) {
	switch {
	case vfs.IsFull(err):
		return false, fmt.Errorf("%w: %s: %w", ErrDiskFull, op, err)
	case vfs.IsReadOnly(err):
		return false, fmt.Errorf("%w: %s: %w", ErrReadOnly, op, err)
	}
	return true, fmt.Errorf("%w: %s: %w", ErrPoisoned, op, err)
}
