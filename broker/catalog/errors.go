package catalog

import (
	"errors"
	"fmt"
)

// Errors of changes. None of them has changed anything. Where nothing else is
// said, the same call will fail again until something else changes.
var (
	ErrExists   = errors.New("a stream of this name exists with other settings")
	ErrNotFound = errors.New("no such stream")
	ErrLimit    = errors.New("as many streams as this broker may have")
	// ErrMissing is returned by Open when the file had to be there and is not.
	ErrMissing = errors.New("catalog file is missing")
	// ErrOfCluster is returned by Open for a file of a cluster's state: changed by
	// one broker alone, it would contradict what the others have.
	ErrOfCluster = errors.New("it is of a broker in a cluster: start the broker as a member of it")

	// ErrDeleting: the name is free again soon, retry.
	ErrDeleting = errors.New("the stream is being deleted")
	// ErrImporting: over soon, retry.
	ErrImporting = errors.New("the founder is still bringing its streams into the cluster")
	// ErrPlacement: compute the placement from the newest state and retry.
	ErrPlacement = errors.New("a shard was placed on a broker or in a group that cannot take it")
	// ErrStale: somebody else was first; look at the newest state.
	ErrStale = errors.New("what this was decided upon has changed in the meantime")

	ErrNoCluster    = errors.New("there is no cluster: it has to be founded first")
	ErrOtherCluster = errors.New("another cluster was founded here")
	ErrNoBroker     = errors.New("no such broker")
	// ErrNodeTaken: another instance has the node id. It has to be removed first, or
	// named as the one that is replaced.
	ErrNodeTaken = errors.New("the node id is another instance's")
	// ErrRemoved: the instance was removed or replaced. Its data directory has to be
	// emptied before the broker can join again.
	ErrRemoved = errors.New("this instance of the broker was removed from the cluster")
	// ErrFull: as many brokers as a cluster may have.
	ErrFull = errors.New("as many brokers as a cluster may have")
)

// BrokerError says what is wrong with a broker, or with a command about one.
type BrokerError struct {
	Node string
	Err  error
}

// Error names the broker.
func (e *BrokerError) Error() string { return fmt.Sprintf("catalog: broker %q: %v", e.Node, e.Err) }

// Unwrap returns what is wrong.
func (e *BrokerError) Unwrap() error { return e.Err }

// HoldsError says what keeps a broker from being removed: drain it first, and wait
// until nothing is left.
type HoldsError struct {
	Node   string   `json:"node"`
	Groups []uint32 `json:"groups,omitempty"` // that it is a member of, or shall be
	Shards int      `json:"shards,omitempty"` // that only it has, or that are on their way to it
}

// Error counts what it holds.
func (e *HoldsError) Error() string {
	return fmt.Sprintf("catalog: broker %q still holds %d quorum groups and is the only owner of %d shards: drain it first",
		e.Node, len(e.Groups), e.Shards)
}

// UnknownCommandError says that a command is of a later release. A broker that
// cannot apply what the others have applied must stop following the cluster: it
// would go on with a state that differs from theirs.
type UnknownCommandError struct {
	Kind    Kind
	Version int
	Err     error // may be nil
}

// Error names the command.
func (e *UnknownCommandError) Error() string {
	detail := ""
	if e.Err != nil {
		detail = ": " + e.Err.Error()
	}
	return fmt.Sprintf("catalog: command %q, version %d, is of a later release%s: this broker cannot follow the cluster until it runs that release",
		e.Kind, e.Version, detail)
}

// Unwrap returns the detail.
func (e *UnknownCommandError) Unwrap() error { return e.Err }

// DamagedCommandError says that what should be a command is none. A broker that
// meets one in the log of commands must stop following the cluster, like for an
// UnknownCommandError; what it has on disk stays.
type DamagedCommandError struct{ Err error }

// Error says what is wrong with it.
func (e *DamagedCommandError) Error() string {
	return fmt.Sprintf("catalog: damaged command: %v: this broker cannot follow the cluster, nothing was changed or removed", e.Err)
}

// Unwrap returns what is wrong with it.
func (e *DamagedCommandError) Unwrap() error { return e.Err }

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
