package server

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// refuse makes a refusal of the code's usual retry class.
func refuse(code wire.Code, format string, args ...any) *stream.Error {
	return &stream.Error{Code: code, Retry: code.DefaultRetry(), Message: fmt.Sprintf(format, args...)}
}

// refuseAfter is refuse with a reason and a wait.
func refuseAfter(code wire.Code, reason string, wait time.Duration, message string) *stream.Error {
	return &stream.Error{Code: code, Retry: wire.RetryAfter, Reason: reason, RetryAfter: wait, Message: message}
}

func draining() *stream.Error { return refuse(wire.CodeDraining, "the broker is shutting down") }

// asRefusal finds the refusal in an error. What carries none happened before
// anything was written: whoever had written something says so.
func asRefusal(err error) *stream.Error {
	if e, ok := errors.AsType[*stream.Error](err); ok {
		return e
	}
	return &stream.Error{Code: wire.CodeInternal, Retry: wire.RetryNow, Message: "internal error", Err: err}
}

// fatalError ends a stream, after its refusal was answered.
type fatalError struct{ refusal *stream.Error }

func (e *fatalError) Error() string { return e.refusal.Error() }

func (e *fatalError) Unwrap() error { return e.refusal }

func fatal(code wire.Code, format string, args ...any) error {
	return &fatalError{refuse(code, format, args...)}
}

// retryAfterMS rounds up: waiting too short is what the hint is there to avoid.
func retryAfterMS(e *stream.Error) uint64 {
	if e.RetryAfter <= 0 {
		return 0
	}
	return uint64((e.RetryAfter + time.Millisecond - 1) / time.Millisecond)
}

// detailOf is what the JSON forms carry beyond code and class.
func detailOf(e *stream.Error) *wire.ErrorDetail {
	if e.Reason == "" && e.RetryAfter <= 0 {
		return nil
	}
	return &wire.ErrorDetail{Reason: e.Reason, RetryAfterMS: retryAfterMS(e)}
}

// errorMessage is the error frame for a refusal; codes says whether the client
// reads codes.
func errorMessage(e *stream.Error, codes bool) *wire.ErrorMsg {
	m := &wire.ErrorMsg{Message: textOf(e)}
	if codes {
		m.Code, m.Retry, m.Detail = e.Code.String(), e.Retry.String(), detailOf(e)
	}
	return m
}

// publishError is errorMessage for a publish that is answered in JSON.
func publishError(id uint64, e *stream.Error, codes bool) *wire.PublishError {
	m := &wire.PublishError{RequestID: id, Message: textOf(e)}
	if codes {
		m.Code, m.Retry, m.Detail = e.Code.String(), e.Retry.String(), detailOf(e)
	}
	return m
}

// fillAck makes k the failed ack for a refusal, as far as the client reads it.
func fillAck(k *wire.Ack, e *stream.Error, offered wire.Flags) {
	k.Message = textOf(e)
	if !offered.Has(wire.FlagAckCode) {
		return
	}
	k.HasCode, k.Code, k.Retry = true, e.Code, e.Retry
	if offered.Has(wire.FlagAckDetail) && (e.Reason != "" || e.RetryAfter > 0) {
		k.HasDetail, k.Reason, k.RetryAfterMS = true, e.Reason, retryAfterMS(e)
	}
}

// maxText bounds the text of a refusal, which may name what the client has named.
const maxText = 512

// textOf is the text of a refusal. A client that does not read codes takes an
// error for final only if its text says "forbidden".
func textOf(e *stream.Error) string {
	text := clip(e.Message, maxText)
	if e.Code == wire.CodeForbidden {
		return "forbidden: " + text
	}
	return text
}

// clip cuts a text at a rune.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "..."
}
