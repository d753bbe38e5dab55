package cluster

import (
	"context"
	"errors"
	"fmt"

	"felix.dev/felix/broker/peer"
)

// Code says what kind of error it is.
type Code string

// Codes of errors.
const (
	// CodeNoLeader: nobody leads the metadata group at the moment, or nobody of a
	// majority can be reached. Nothing was changed.
	CodeNoLeader Code = "no_leader"
	// CodeOutcomeUnknown: what was asked for may have been done, or may still be.
	CodeOutcomeUnknown Code = "outcome_unknown"
	// CodeBusy: something else has to end first. Nothing was changed.
	CodeBusy Code = "busy"
	// CodeClosed: this broker is going down.
	CodeClosed Code = "closed"
	// CodeNotFound: there is no such broker or group.
	CodeNotFound Code = "not_found"
	// CodeInvalid: what was asked for makes no sense.
	CodeInvalid Code = "invalid"
	// CodeRefused: it is not safe as things are; the message says what has to
	// change.
	CodeRefused Code = "refused"
	// CodeForeign: the data here is of another cluster, or of none.
	CodeForeign Code = "foreign_data"
	// CodeTaken: another broker that lives has this node id.
	CodeTaken Code = "node_taken"
	// CodeRemoved: this broker was removed from the cluster, or its node id is that
	// of another data directory now.
	CodeRemoved Code = "removed"
	// CodeVersion: the brokers do not understand each other.
	CodeVersion Code = "version"
	// CodeDamaged: what this broker remembers of its cluster is damaged or gone.
	CodeDamaged Code = "damaged"
)

// Error is an error of the cluster. It travels between brokers as it is.
type Error struct {
	Code    Code
	Message string
	Retry   bool // trying the same again may help
}

// Error is the message.
func (e *Error) Error() string { return "cluster: " + e.Message }

// Retryable tells whether trying again may help.
func (e *Error) Retryable() bool { return e.Retry }

// Is makes errors with the same code match, so that errors.Is(err,
// &Error{Code: CodeRemoved}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// Errors to compare with.
var (
	ErrNoLeader       = &Error{Code: CodeNoLeader}
	ErrOutcomeUnknown = &Error{Code: CodeOutcomeUnknown}
	ErrRemoved        = &Error{Code: CodeRemoved}
	ErrForeign        = &Error{Code: CodeForeign}
	ErrTaken          = &Error{Code: CodeTaken}
	ErrNotFound       = &Error{Code: CodeNotFound}
	ErrRefused        = &Error{Code: CodeRefused}
	ErrClosed         = &Error{Code: CodeClosed}
)

func refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func later(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retry: true}
}

// outgoing is the form in which an error is told to another broker.
func outgoing(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &peer.Error{Code: string(e.Code), Message: e.Message, Retry: e.Retry}
	}
	return err
}

// incoming is what another broker's error means here. Ours are those whose code
// is one of ours; the rest is trouble on the way, and is returned as it is.
func incoming(err error) error {
	told, ok := errors.AsType[*peer.Error](err)
	if !ok {
		return err
	}
	switch c := Code(told.Code); c {
	case CodeNoLeader, CodeOutcomeUnknown, CodeBusy, CodeClosed, CodeNotFound, CodeInvalid, CodeRefused, CodeForeign, CodeTaken,
		CodeRemoved, CodeVersion, CodeDamaged:
		return &Error{Code: c, Message: told.Message, Retry: told.Retry}
	default:
		return err
	}
}

// final tells whether an error ends an attempt for good.
func final(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && !e.Retry
}

// over tells whether somebody gave up waiting.
func over(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
