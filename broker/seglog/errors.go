package seglog

import (
	"errors"
	"fmt"

	"felix.dev/felix/broker/vfs"
)

var (
	// ErrDiskFull says that the disk (or a quota) had no room: nothing of the
	// append was kept, and the same append may succeed once there is room.
	ErrDiskFull = errors.New("seglog: disk full")
	// ErrReadOnly says that the file system refuses writes for now: nothing of the
	// append was kept, and the same append may succeed once it is writable again.
	ErrReadOnly = errors.New("seglog: file system is read-only")
	// ErrPoisoned says that a write or flush failed in a way that leaves unknown
	// what is on disk. It lasts until the log is opened again; the outcome of
	// appends that were not yet reported to Config.Committed is unknown.
	ErrPoisoned = errors.New("seglog: poisoned by an earlier write failure, until it is reopened")
	// ErrClosed says that Close was called. Trying again doesn't help.
	ErrClosed = errors.New("seglog: closed")
	// ErrFormat says that a file is of another format or version, or belongs to
	// another log (its incarnation differs). Nothing was changed.
	ErrFormat = errors.New("seglog: not a segment of this log")
)

// CorruptionError says that bytes which had been durable are no longer what was
// written. Trying again doesn't help; nothing is deleted because of it.
type CorruptionError struct {
	Segment uint64 // base offset of the damaged segment: its file name
	Offset  uint64 // first offset that can't be read
	Pos     int64  // where in the segment's file
	Reason  string
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("seglog: segment %s is damaged at byte %d (offset %d): %s", segmentName(e.Segment), e.Pos, e.Offset, e.Reason)
}

// TooOldError says that retention has removed the requested offset. Reading on is
// possible from Oldest.
type TooOldError struct {
	Requested uint64
	Oldest    uint64
}

func (e *TooOldError) Error() string {
	return fmt.Sprintf("seglog: offset %d is no longer kept, the oldest is %d", e.Requested, e.Oldest)
}

// classify gives a failed write the error that tells the owner what to do next.
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
