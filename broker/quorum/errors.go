package quorum

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotLeader says that this server does not lead the group, or is giving leadership away.
	// Nothing was appended; trying again at the leader helps.
	ErrNotLeader = errors.New("quorum: not the leader")
	// ErrOutcomeUnknown says that leadership, or patience, was lost after the entry was handed
	// over. It may be committed yet.
	ErrOutcomeUnknown = errors.New("quorum: outcome unknown")
	// ErrStuck says that this server's storage or machine has not answered in time, see
	// State.Stuck. Nothing was appended.
	ErrStuck = errors.New("quorum: stuck")
	// ErrBusy says that too many proposals wait. Nothing was appended; trying again later helps.
	ErrBusy = errors.New("quorum: too many proposals")
	// ErrTooLarge says that the entry is above MaxEntryBytes. Trying again doesn't help.
	ErrTooLarge = errors.New("quorum: entry too large")
	// ErrClosed says that the group or the node is closed. Nothing was appended.
	ErrClosed = errors.New("quorum: closed")
	// ErrNotMember says that the group has no such member.
	ErrNotMember = errors.New("quorum: not a member")
	// ErrNotVoter says that what was asked for needs a voter.
	ErrNotVoter = errors.New("quorum: not a voter")
	// ErrBehind says that the member has not caught up. Trying again later helps.
	ErrBehind = errors.New("quorum: not caught up")
	// ErrExists says that the group is open, or being opened or removed.
	ErrExists = errors.New("quorum: group is open")
)

// DamagedError says that a group's state on this server cannot be trusted. Nothing
// was changed, and trying again doesn't help: the server's replica must be
// removed and made anew from its peers, as a new instance.
type DamagedError struct {
	Group  uint32
	Path   string
	Reason string
	Err    error // nil: there is no other
}

func (e *DamagedError) Error() string {
	text := fmt.Sprintf("quorum: group %d: %s is damaged: %s", e.Group, e.Path, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + " (rebuild this replica from its peers)"
}

// Unwrap is the error that showed the damage.
func (e *DamagedError) Unwrap() error { return e.Err }

// StuckError says what a group waits for.
type StuckError struct {
	Group uint32
	What  string // "log store", "state store", "machine"
	Since time.Time
	Err   error // what it answered last; nil: it has not answered
}

func (e *StuckError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("quorum: group %d: %s fails since %s: %v", e.Group, e.What, e.Since.Format(time.RFC3339), e.Err)
	}
	return fmt.Sprintf("quorum: group %d: %s has not answered since %s", e.Group, e.What, e.Since.Format(time.RFC3339))
}

// Unwrap is ErrStuck and what the storage answered.
func (e *StuckError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrStuck, e.Err}
	}
	return []error{ErrStuck}
}
