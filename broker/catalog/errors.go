package catalog

import (
	"errors"
	"fmt"
)

// Errors of changes. None of them has changed anything, and the same call will
// fail again until something else changes.
var (
	ErrExists   = errors.New("a stream of this name exists with other settings")
	ErrNotFound = errors.New("no such stream")
	ErrLimit    = errors.New("as many streams as this broker may have")
	// ErrMissing is returned by Open when the file had to be there and is not.
	ErrMissing = errors.New("catalog file is missing")
)

// InvalidError says what is wrong with settings. Retrying does not help.
type InvalidError struct {
	Name Name
	Err  error // every problem, joined
}

// Error lists the problems.
func (e *InvalidError) Error() string { return fmt.Sprintf("catalog: stream %s: %v", e.Name, e.Err) }

// Unwrap returns the problems.
func (e *InvalidError) Unwrap() error { return e.Err }

// CorruptError says that the catalog file is damaged. Nothing was changed on
// disk because of it. Retrying does not help; a person has to decide.
type CorruptError struct {
	Path   string
	Reason string
	Err    error // may be nil
}

// Error says what is damaged and what can be done.
func (e *CorruptError) Error() string {
	detail := ""
	if e.Err != nil {
		detail = ": " + e.Err.Error()
	}
	return fmt.Sprintf("catalog: %s is damaged: %s%s; nothing was changed or removed: restore the file from a copy, "+
		"or move it away to start with no streams (their data stays where it is)", e.Path, e.Reason, detail)
}

// Unwrap returns the detail.
func (e *CorruptError) Unwrap() error { return e.Err }

// VersionError says that the file was written by a later release. It is intact.
type VersionError struct {
	Path                string
	Version, Understood int
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("catalog: %s has format version %d, and this release reads up to %d: start a release that reads it",
		e.Path, e.Version, e.Understood)
}

// WriteError says that a change could not be made durable. The catalog goes on
// with what it had; the same change may be tried again once the disk allows it
// (a full disk has room, a read-only file system is writable).
type WriteError struct {
	Path string
	Err  error
}

// Error says which file and why.
func (e *WriteError) Error() string { return fmt.Sprintf("catalog: write %s: %v", e.Path, e.Err) }

// Unwrap returns the file system's error.
func (e *WriteError) Unwrap() error { return e.Err }
