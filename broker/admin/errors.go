package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"

	"felix.dev/felix/broker/catalog"
)

// Code says what kind of error it is. Most are those of the wire protocol.
type Code string

// Codes.
const (
	CodeUnauthenticated  Code = "unauthenticated"
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not_found"
	CodeInvalidRequest   Code = "invalid_request"
	CodeAlreadyExists    Code = "already_exists" // with other settings
	CodeLimitExceeded    Code = "limit_exceeded"
	CodeOverloaded       Code = "overloaded"
	CodeDraining         Code = "draining"
	CodeShardUnavailable Code = "shard_unavailable"
	CodeStorage          Code = "storage"
	CodeNoLeader         Code = "no_leader" // the cluster cannot agree on anything now
	CodeRefused          Code = "refused"   // not safe as things are; the message says what has to change
	CodeInternal         Code = "internal"
)

// Retry says what may be done about an error, in the words of the wire protocol.
type Retry string

// Retry classes.
const (
	RetryNow            Retry = "retry"           // nothing was changed, ask again
	RetryAfter          Retry = "retry_after"     // nothing was changed, wait first
	RetryOutcomeUnknown Retry = "outcome_unknown" // may have been done
	RetryFatal          Retry = "fatal"           // will fail again
)

// Detail is what else is known about an error.
type Detail struct {
	Reason       string `json:"reason,omitempty"`
	RetryAfterMS uint64 `json:"retry_after_ms,omitempty"`
}

// Error is an answer that is not a success, in the form in which it travels. The
// broker may return one from its interfaces, and the client returns them.
type Error struct {
	Status  int     `json:"-"` // of HTTP; 0: the usual one of the code
	Code    Code    `json:"code"`
	Message string  `json:"message"`
	Retry   Retry   `json:"retry"`
	Detail  *Detail `json:"detail,omitempty"`
}

// Error is the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("admin: %s: %s", e.Code, e.Message) }

// Is makes errors with the same code match, so that errors.Is(err,
// &Error{Code: CodeNotFound}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// status is the usual HTTP status of a code.
func (c Code) status() int {
	switch c {
	case CodeUnauthenticated:
		return http.StatusUnauthorized
	case CodeForbidden:
		return http.StatusForbidden
	case CodeNotFound:
		return http.StatusNotFound
	case CodeInvalidRequest:
		return http.StatusBadRequest
	case CodeAlreadyExists, CodeRefused:
		return http.StatusConflict
	case CodeLimitExceeded:
		return http.StatusUnprocessableEntity
	case CodeOverloaded:
		return http.StatusTooManyRequests
	case CodeDraining, CodeShardUnavailable, CodeNoLeader:
		return http.StatusServiceUnavailable
	case CodeStorage:
		return http.StatusInsufficientStorage
	case CodeInternal:
	}
	return http.StatusInternalServerError
}

func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Retry: RetryFatal, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *Error {
	return &Error{Code: CodeNotFound, Retry: RetryFatal, Message: fmt.Sprintf(format, args...)}
}

// diskRetryMS is how long a caller should leave a disk alone that has refused.
const diskRetryMS = 5000

// toError finds the form in which an error of the broker travels. What is not
// known is internal, and its text stays inside.
func toError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*catalog.InvalidError](err); ok {
		return invalid("%v", e)
	}
	if e, ok := errors.AsType[*catalog.WriteError](err); ok {
		out := &Error{
			Code: CodeStorage, Retry: RetryAfter, Message: e.Error(), Detail: &Detail{RetryAfterMS: diskRetryMS},
		}
		switch {
		case errors.Is(e, syscall.ENOSPC), errors.Is(e, syscall.EDQUOT):
			out.Detail.Reason = "disk_full"
		case errors.Is(e, syscall.EROFS):
			out.Detail.Reason = "read_only"
		}
		return out
	}
	if e, ok := passing(err); ok {
		return e
	}
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return notFound("%v", err)
	case errors.Is(err, catalog.ErrExists):
		return &Error{Code: CodeAlreadyExists, Retry: RetryFatal, Message: err.Error()}
	case errors.Is(err, catalog.ErrLimit):
		return &Error{Code: CodeLimitExceeded, Retry: RetryFatal, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{
			Status: http.StatusServiceUnavailable, Code: CodeInternal, Retry: RetryOutcomeUnknown,
			Message: "the request took too long or was given up",
		}
	}
	return &Error{Code: CodeInternal, Retry: RetryOutcomeUnknown, Message: "internal error, see the broker's log"}
}

// soonMS is how long a caller should leave alone what is over soon.
const soonMS = 500

// passing is what another attempt will get past: a name that is being deleted, a
// placement that others were quicker to change.
func passing(err error) (*Error, bool) {
	for reason, is := range map[string]error{
		"deleting": catalog.ErrDeleting, "importing": catalog.ErrImporting,
		"placement": catalog.ErrPlacement, "stale": catalog.ErrStale,
	} {
		if errors.Is(err, is) {
			return &Error{
				Code: CodeRefused, Retry: RetryAfter, Message: err.Error(), Detail: &Detail{Reason: reason, RetryAfterMS: soonMS},
			}, true
		}
	}
	return nil, false
}

// write sends the error as the answer.
func (e *Error) write(w http.ResponseWriter) {
	status := e.Status
	if status == 0 {
		status = e.Code.status()
	}
	switch {
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case e.Detail != nil && e.Detail.RetryAfterMS > 0:
		w.Header().Set("Retry-After", strconv.FormatUint((e.Detail.RetryAfterMS+999)/1000, 10))
	}
	writeJSON(w, status, e)
}
