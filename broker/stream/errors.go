package stream

import (
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/wire"
)

// diskRetry is when what the log has refused may come again.
const diskRetry = time.Second

// ErrClosed is the cause of errors from a shard that serves no longer.
var ErrClosed = errors.New("stream: shard is closed")

// ErrNotLeader is the cause of refusals by a replica that does not lead, or does not
// serve yet: nothing was written, another broker may take it, or this one in a moment.
var ErrNotLeader = errors.New("stream: this replica does not lead the shard")

// ErrOutcomeUnknown is the cause of errors about publishes that were handed to the
// replicas and may or may not be committed. An idempotent publish may be sent again.
var ErrOutcomeUnknown = errors.New("stream: the outcome of the write is unknown")

// ReasonSubscriberBlocking is the Reason of a publish that a reader under Block left
// no room for.
const ReasonSubscriberBlocking = "subscriber_blocking"

// Error is a refusal with the code and the retry class that a client is told.
type Error struct {
	Code       wire.Code
	Retry      wire.Retry
	Reason     string
	RetryAfter time.Duration
	Message    string
	Err        error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("stream: %s: %s (%s): %v", e.Code, e.Message, e.Retry, e.Err)
	}
	return fmt.Sprintf("stream: %s: %s (%s)", e.Code, e.Message, e.Retry)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// CursorReason says on which side of the retained log a wanted offset lies.
type CursorReason string

const (
	// TooOld is an offset that retention has taken.
	TooOld CursorReason = "too_old"
	// InFuture is an offset past the readable end.
	InFuture CursorReason = "in_future"
)

// CursorError refuses a start offset; Available is the nearest one that would be taken.
type CursorError struct {
	Reason               CursorReason
	Requested, Available uint64
}

func (e *CursorError) Error() string {
	return fmt.Sprintf("stream: offset %d is %s: the nearest available is %d", e.Requested, e.Reason, e.Available)
}

// Refusal says why an idempotent publish was not appended.
type Refusal string

const (
	// SequenceGap is a sequence above the next expected one.
	SequenceGap Refusal = "sequence_gap"
	// SequenceExpired is a sequence below the remembered window.
	SequenceExpired Refusal = "sequence_expired"
	// SequenceReused is a remembered sequence with other bytes.
	SequenceReused Refusal = "sequence_reused"
	// UnknownProducer is a producer that this shard has not seen, not starting at 0.
	UnknownProducer Refusal = "unknown_producer"
)

// RefusedError refuses one idempotent publish. Nothing was appended for it.
type RefusedError struct {
	Reason   Refusal
	Expected uint64 // with SequenceGap
	Offset   uint64 // with SequenceReused: where the first use of the sequence was written
}

func (e *RefusedError) Error() string {
	if e.Reason == SequenceGap {
		return fmt.Sprintf("stream: idempotent publish refused: %s, expected %d", e.Reason, e.Expected)
	}
	return fmt.Sprintf("stream: idempotent publish refused: %s", e.Reason)
}
