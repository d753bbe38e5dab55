package client

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"felix.dev/felix/broker/wire"
)

func TestErrorTexts(t *testing.T) {
	cause := errors.New("idle timeout")
	tests := []struct {
		err  error
		want string
	}{
		{&Error{Code: wire.CodeForbidden, Retry: wire.RetryFatal, Message: "no"}, "felix: no (forbidden, fatal)"},
		{&Error{Retry: wire.RetryNow, Message: "lost", Err: cause}, "felix: lost (retry): idle timeout"},
		{
			&Error{Code: wire.CodeOverloaded, Retry: wire.RetryAfter, Message: "full", Reason: "publish_queue_full", RetryAfter: time.Second},
			"felix: full (overloaded, publish_queue_full, retry_after 1s)",
		},
		{&CursorError{Reason: "too_old", Requested: 3, Available: 7}, "felix: offset 3 is not retained any more (too_old), the oldest is 7; subscribe again from there or later"},
		{&CursorError{Reason: "in_future", Requested: 9, Available: 7}, "felix: offset 9 is past the end of the stream, which is 7; subscribe again at an offset up to it"},
		{&LaggedError{ResumeFrom: 5}, "felix: the subscription was too slow and was ended by the broker; subscribe again at offset 5"},
		{&LostError{Position: 5, Resumable: true, Err: cause}, "felix: subscription lost; subscribe again at offset 5: idle timeout"},
		{&LostError{Err: cause}, "felix: subscription lost, and the stream has no offsets to resume from: idle timeout"},
		{&RefusedError{Reason: "sequence_gap", Expected: 4, Message: "m"}, "felix: idempotent batch refused: sequence_gap (expected 4): m"},
		{&ProtocolError{Where: "event", Err: io.ErrUnexpectedEOF}, "felix: protocol error, event stream: unexpected EOF"},
		{&UnsupportedError{What: "topology"}, "felix: the broker does not support topology"},
		{&ConnectError{Errs: []error{cause}}, "felix: no broker can be reached: idle timeout"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestErrorClasses(t *testing.T) {
	tests := []struct {
		err                error
		unknown, retryable bool
	}{
		{&Error{Retry: wire.RetryNow}, false, true},
		{&Error{Retry: wire.RetryAfter}, false, true},
		{&Error{Retry: wire.RetryRedirect}, false, true},
		{&Error{Retry: wire.RetryOutcomeUnknown}, true, false},
		{&Error{Retry: wire.RetryFatal}, false, false},
		{&RefusedError{Reason: "sequence_reused"}, true, false},
		{&ConnectError{}, false, true},
		{unknownOutcome(ErrClosed), true, false},
		{fmt.Errorf("wrapped: %w", unknownOutcome(io.EOF)), true, false},
	}
	for _, tt := range tests {
		if u, r := errors.Is(tt.err, ErrOutcomeUnknown), errors.Is(tt.err, ErrRetryable); u != tt.unknown || r != tt.retryable {
			t.Errorf("%v: outcome unknown %v, retryable %v; want %v, %v", tt.err, u, r, tt.unknown, tt.retryable)
		}
	}
}

func TestErrorFromTheWire(t *testing.T) {
	tests := []struct {
		name                string
		message, code, text string
		want                Error
	}{
		{"class given", "m", "internal", "retry", Error{Code: wire.CodeInternal, Retry: wire.RetryNow, Message: "m"}},
		{"class of the code", "m", "quorum_timeout", "", Error{Code: wire.CodeQuorumTimeout, Retry: wire.RetryOutcomeUnknown, Message: "m"}},
		{"code of later", "m", "revoked", "fatal", Error{Retry: wire.RetryFatal, Message: "m [revoked]"}},
		{"class of later", "m", "overloaded", "sometime", Error{Code: wire.CodeOverloaded, Retry: wire.RetryFatal, Message: "m"}},
		{"only text", "m", "", "", Error{Retry: wire.RetryNow, Message: "m"}},
		{"only text, final", "forbidden: m", "", "", Error{Retry: wire.RetryFatal, Message: "forbidden: m"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := errorOf(tt.message, tt.code, tt.text, nil); *got != tt.want {
				t.Errorf("got %+v, want %+v", *got, tt.want)
			}
		})
	}
	if got := errorOf("m", "overloaded", "retry_after", &wire.ErrorDetail{Reason: "r", RetryAfterMS: 1 << 62}); got.RetryAfter != time.Hour {
		t.Errorf("an absurd wait: got %v, want an hour", got.RetryAfter)
	}
	if got := errorOfAck(&wire.Ack{Message: "queue full"}); got.Retry != wire.RetryNow {
		t.Errorf("an ack without a code: got %+v", got)
	}
}
