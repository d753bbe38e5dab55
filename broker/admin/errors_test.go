package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/wire"
)

func TestErrorsOfTheBroker(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		status int
		want   Error // without the message
	}{
		{"own", &Error{Status: 418, Code: CodeOverloaded, Retry: RetryAfter, Message: "m", Detail: &Detail{RetryAfterMS: 1500}}, 418, Error{Code: CodeOverloaded, Retry: RetryAfter, Detail: &Detail{RetryAfterMS: 1500}}},
		{"wrapped", fmt.Errorf("x: %w", &Error{Code: CodeDraining, Retry: RetryNow, Message: "m"}), 503, Error{Code: CodeDraining, Retry: RetryNow}},
		{"invalid", &catalog.InvalidError{Err: errors.New("m")}, 400, Error{Code: CodeInvalidRequest, Retry: RetryFatal}},
		{"not found", fmt.Errorf("x: %w", catalog.ErrNotFound), 404, Error{Code: CodeNotFound, Retry: RetryFatal}},
		{"exists", catalog.ErrExists, 409, Error{Code: CodeAlreadyExists, Retry: RetryFatal}},
		{"limit", catalog.ErrLimit, 422, Error{Code: CodeLimitExceeded, Retry: RetryFatal}},
		{"deleting", fmt.Errorf("x: %w", catalog.ErrDeleting), 409, Error{Code: CodeRefused, Retry: RetryAfter, Detail: &Detail{Reason: "deleting", RetryAfterMS: 500}}},
		{"stale", fmt.Errorf("x: %w", catalog.ErrStale), 409, Error{Code: CodeRefused, Retry: RetryAfter, Detail: &Detail{Reason: "stale", RetryAfterMS: 500}}},
		{"disk full", &catalog.WriteError{Err: syscall.ENOSPC}, 507, Error{Code: CodeStorage, Retry: RetryAfter, Detail: &Detail{Reason: "disk_full", RetryAfterMS: 5000}}},
		{"read only", &catalog.WriteError{Err: syscall.EROFS}, 507, Error{Code: CodeStorage, Retry: RetryAfter, Detail: &Detail{Reason: "read_only", RetryAfterMS: 5000}}},
		{"disk", &catalog.WriteError{Err: syscall.EIO}, 507, Error{Code: CodeStorage, Retry: RetryAfter, Detail: &Detail{RetryAfterMS: 5000}}},
		{"timeout", context.DeadlineExceeded, 503, Error{Code: CodeInternal, Retry: RetryOutcomeUnknown}},
		{"unknown", errors.New("secret"), 500, Error{Code: CodeInternal, Retry: RetryOutcomeUnknown}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			h.streams.err = tc.err
			_, err := h.manager().Stream(t.Context(), named("s"))
			got, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if got.Message == "" || strings.Contains(got.Message, "secret") {
				t.Errorf("got message %q", got.Message)
			}
			tc.want.Status, tc.want.Message = tc.status, got.Message
			if diff := cmp.Diff(*got, tc.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestRetryAfterHeader(t *testing.T) {
	h := newHouse(t)
	h.streams.err = &Error{Code: CodeOverloaded, Retry: RetryAfter, Message: "m", Detail: &Detail{RetryAfterMS: 1500}}
	_, header, _ := h.request(http.MethodGet, "/v1/streams", h.token("t1"), "")
	if got := header.Get("Retry-After"); got != "2" {
		t.Errorf("got %q", got)
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("x: %w", &Error{Code: CodeNotFound, Message: "m"})
	if !errors.Is(err, &Error{Code: CodeNotFound}) || errors.Is(err, &Error{Code: CodeForbidden}) || errors.Is(err, &Error{Code: CodeNotFound, Message: "other"}) {
		t.Error("wrong match")
	}
}

// Codes and classes speak the language of the wire.
func TestCodesAreThoseOfTheWire(t *testing.T) {
	for _, c := range []Code{
		CodeUnauthenticated, CodeForbidden, CodeNotFound, CodeInvalidRequest, CodeLimitExceeded,
		CodeOverloaded, CodeDraining, CodeShardUnavailable, CodeStorage, CodeInternal,
	} {
		if _, ok := wire.ParseCode(string(c)); !ok {
			t.Errorf("%s is not a code of the wire", c)
		}
	}
	for _, r := range []Retry{RetryNow, RetryAfter, RetryOutcomeUnknown, RetryFatal} {
		if got := wire.ParseRetry(string(r)); got.String() != string(r) {
			t.Errorf("%s is not a retry class of the wire", r)
		}
	}
}
