package peer

import (
	"errors"
	"fmt"
)

var (
	// ErrUnreachable means that no connection came about and nothing was sent. Trying
	// again helps when the peer is back, or has an address.
	ErrUnreachable = errors.New("peer unreachable")
	// ErrUnanswered means that a call was sent and no answer came. It may have been
	// carried out.
	ErrUnanswered = errors.New("call was sent but not answered")
	// ErrCertificate means that one side does not take the other's certificate, or has
	// none to show. Trying again helps only after certificates have changed.
	ErrCertificate = errors.New("peer certificate not accepted")
	// ErrProtocol means that the other side does not speak this protocol.
	ErrProtocol = errors.New("not a felix peer")
	// ErrTooLarge means that a body is above Config.MaxCallBytes.
	ErrTooLarge = errors.New("call body too large")
	// ErrClosed means that this broker's transport is closed.
	ErrClosed = errors.New("peer transport is closed")
)

// Reason is why a connection was refused. It is part of the answer to a hello: a
// reason keeps its number.
type Reason byte

// The reasons.
const (
	RefusedHello       Reason = 1 // the hello could not be read
	RefusedVersion     Reason = 2 // the hello's version is not known
	RefusedCluster     Reason = 3 // another cluster
	RefusedNode        Reason = 4 // another node than was meant
	RefusedCertificate Reason = 5 // the certificate does not name the node that the hello does
	RefusedKind        Reason = 6 // nobody handles the kind
	RefusedBusy        Reason = 7 // too many connections
	RefusedClosing     Reason = 8 // the broker is shutting down
)

func (r Reason) String() string {
	switch r {
	case RefusedHello:
		return "hello could not be read"
	case RefusedVersion:
		return "version of the protocol is not known"
	case RefusedCluster:
		return "another cluster"
	case RefusedNode:
		return "another node than was meant"
	case RefusedCertificate:
		return "certificate does not name the node"
	case RefusedKind:
		return "kind of connection is not served"
	case RefusedBusy:
		return "too many connections"
	case RefusedClosing:
		return "shutting down"
	}
	return fmt.Sprintf("reason %d", byte(r))
}

// RefusedError is a hello that was refused: nothing else was sent. With RefusedCluster
// and RefusedNode it may also be this side that refused what the other side is.
type RefusedError struct {
	Reason Reason
	// Addr was dialed, and Node of Cluster is there ("": it did not say).
	Addr, Node, Cluster string
	// Message says more, for people.
	Message string
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("peer %s: connection refused: %s", e.Addr, e.Reason)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Temporary says whether the same connection may be taken later.
func (e *RefusedError) Temporary() bool {
	return e.Reason == RefusedBusy || e.Reason == RefusedClosing || e.Reason == RefusedKind
}

// Codes of errors that calls answer by themselves. Handlers have their own besides.
const (
	CodeUnknownMethod = "unknown_method"
	CodeBadRequest    = "bad_request"
	CodeTooLarge      = "too_large"
	CodeTimeout       = "timeout" // the handler ran out of the caller's time; it may have done its work
	CodeInternal      = "internal"
)

// Error is the answer of a call that failed at the other side. A handler returns one
// to choose what the caller gets; any other error becomes CodeInternal.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Retry says that the same call may succeed later, and was not carried out.
	Retry bool `json:"retry,omitempty"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }
