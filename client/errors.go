package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"felix.dev/felix/broker/wire"
)

var (
	// ErrClosed is returned by calls on a Client, Publisher or Subscription that was closed by its owner. Trying
	// again does not help.
	ErrClosed = errors.New("felix: closed")

	// ErrOutcomeUnknown is what errors.Is finds in every publish error after which the record may or may not have
	// been stored. Sending it again may duplicate it, unless the publisher is idempotent.
	ErrOutcomeUnknown = errors.New("felix: outcome unknown")

	// ErrRetryable is what errors.Is finds in every error of the broker or the network after which nothing was
	// stored and the same call may succeed later.
	ErrRetryable = errors.New("felix: may be retried")
)

// Error is a refusal by a broker, or the client's own verdict in the same terms: when a connection is lost the
// publishes that were on it fail with code unacknowledged and class outcome_unknown.
type Error struct {
	// Code is 0 if the broker sent none.
	Code wire.Code
	// Retry says what may be done about it.
	Retry wire.Retry
	// Message is for people.
	Message string
	// Reason refines Code ("publish_queue_full", "not_ready"); often empty.
	Reason string
	// RetryAfter is the wait that the broker suggests; 0 if it does not.
	RetryAfter time.Duration
	// Err is the cause if the client itself made this error; nil if a broker sent it.
	Err error
}

// Error describes the refusal and says whether retrying helps.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("felix: ")
	b.WriteString(e.Message)
	b.WriteString(" (")
	if e.Code != 0 {
		b.WriteString(e.Code.String())
		b.WriteString(", ")
	}
	if e.Reason != "" {
		b.WriteString(e.Reason)
		b.WriteString(", ")
	}
	b.WriteString(e.Retry.String())
	if e.RetryAfter > 0 {
		b.WriteString(" " + e.RetryAfter.String())
	}
	b.WriteString(")")
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause, if the client itself made the error.
func (e *Error) Unwrap() error { return e.Err }

// Is matches ErrOutcomeUnknown and ErrRetryable by retry class.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrOutcomeUnknown:
		return e.Retry == wire.RetryOutcomeUnknown
	case ErrRetryable:
		return e.Retry == wire.RetryNow || e.Retry == wire.RetryAfter || e.Retry == wire.RetryRedirect
	}
	return false
}

// CursorError refuses a subscribe position. It is never retried by itself: the caller decides where to go on.
type CursorError struct {
	// Reason is "too_old" (Available is the oldest retained offset) or "in_future" (Available is the end).
	Reason    string
	Requested uint64
	Available uint64
}

func (e *CursorError) Error() string {
	if e.Reason == wire.CursorInFuture {
		return fmt.Sprintf("felix: offset %d is past the end of the stream, which is %d; subscribe again at an offset up to it", e.Requested, e.Available)
	}
	return fmt.Sprintf("felix: offset %d is not retained any more (%s), the oldest is %d; subscribe again from there or later", e.Requested, e.Reason, e.Available)
}

// LaggedError ends a subscription that does not resume by itself (SubscribeConfig.NoReconnect): the broker dropped
// it because it was too slow.
type LaggedError struct {
	// ResumeFrom is the first offset that was not delivered.
	ResumeFrom uint64
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("felix: the subscription was too slow and was ended by the broker; subscribe again at offset %d", e.ResumeFrom)
}

// LostError ends a subscription that could not be resumed, or must not be (SubscribeConfig.NoReconnect).
type LostError struct {
	// Position is the first offset that was not returned to the application.
	Position uint64
	// Resumable is false if the stream has no offsets; then there is no position to go on from.
	Resumable bool
	// Err is why the event stream ended, joined with why the last attempt to resume failed.
	Err error
}

func (e *LostError) Error() string {
	if !e.Resumable {
		return fmt.Sprintf("felix: subscription lost, and the stream has no offsets to resume from: %v", e.Err)
	}
	return fmt.Sprintf("felix: subscription lost; subscribe again at offset %d: %v", e.Position, e.Err)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// RefusedError is the broker's refusal of an idempotent batch. Whether the records are stored is not known from it
// alone: it matches ErrOutcomeUnknown.
type RefusedError struct {
	// Reason is "sequence_gap", "sequence_expired", "sequence_reused", "unknown_producer" or "not_leader".
	Reason string
	// Expected is the sequence the broker waits for, with sequence_gap.
	Expected uint64
	Message  string
}

func (e *RefusedError) Error() string {
	s := "felix: idempotent batch refused: " + e.Reason
	if e.Reason == refusedGap {
		s = fmt.Sprintf("%s (expected %d)", s, e.Expected)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Is matches ErrOutcomeUnknown.
func (e *RefusedError) Is(target error) bool { return target == ErrOutcomeUnknown }

const refusedGap = "sequence_gap"

// ProtocolError means that the broker sent something that this client cannot accept. Trying again does not help.
type ProtocolError struct {
	// Where names the kind of stream: "control", "publish" or "event".
	Where string
	Err   error
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("felix: protocol error, %s stream: %v", e.Where, e.Err)
}

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Err }

// UnsupportedError means that the broker does not offer what a call needs. Trying again at the same broker does not
// help.
type UnsupportedError struct {
	// What names the missing feature.
	What string
}

func (e *UnsupportedError) Error() string {
	return "felix: the broker does not support " + e.What
}

// ConnectError means that no broker could be reached: one error per address, in the order they were tried. Trying
// again later may help, unless an address is wrong or a certificate is refused.
type ConnectError struct {
	Errs []error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("felix: no broker can be reached: %v", errors.Join(e.Errs...))
}

// Unwrap returns the errors of the addresses.
func (e *ConnectError) Unwrap() []error { return e.Errs }

// Is matches ErrRetryable.
func (e *ConnectError) Is(target error) bool { return target == ErrRetryable }

// retryByText is the class of a refusal that came without a code: only what is forbidden is known to be final.
func retryByText(message string) wire.Retry {
	if strings.Contains(message, "forbidden") {
		return wire.RetryFatal
	}
	return wire.RetryNow
}

// movesOver says of a broker's refusal that another broker may do better: this one may be cut off from those that could serve.
func movesOver(err error) bool {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Reason == string(wire.RefusedNotLeader)
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	if e.Code == 0 {
		return e.Retry == wire.RetryNow && e.Err != nil // this client's own: no answer in time, or a lost connection
	}
	return slices.Contains([]wire.Code{
		wire.CodeShardUnavailable, wire.CodeNotLeader, wire.CodeDraining, wire.CodeQuorumTimeout, wire.CodeLeadershipLost,
	}, e.Code)
}
