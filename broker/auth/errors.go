package auth

import (
	"errors"
	"fmt"
)

// Reason is why a token was refused. The set is closed and small, so that it
// can be a metric label.
type Reason string

// Reasons for refusing a token.
const (
	ReasonMissing       Reason = "missing"
	ReasonMalformed     Reason = "malformed"
	ReasonAlgorithm     Reason = "algorithm"
	ReasonUnknownTenant Reason = "unknown_tenant"
	ReasonSignature     Reason = "signature"
	ReasonExpired       Reason = "expired"
	ReasonNotYetValid   Reason = "not_yet_valid"
	ReasonIssuer        Reason = "issuer"
	ReasonAudience      Reason = "audience"
	ReasonSubject       Reason = "subject"
	ReasonTenant        Reason = "tenant"
)

// Reasons lists every Reason.
func Reasons() []Reason {
	return []Reason{
		ReasonMissing, ReasonMalformed, ReasonAlgorithm, ReasonUnknownTenant, ReasonSignature,
		ReasonExpired, ReasonNotYetValid, ReasonIssuer, ReasonAudience, ReasonSubject, ReasonTenant,
	}
}

// Error says that a token was refused. On the wire it is code unauthenticated,
// retry fatal: the same token will be refused again; another token may not be.
// It never contains the token.
type Error struct {
	Reason Reason
	Err    error // detail, may be nil
}

// Error says why the token was refused.
func (e *Error) Error() string {
	if e.Err == nil {
		return "auth: token refused: " + string(e.Reason)
	}
	return fmt.Sprintf("auth: token refused: %s: %v", e.Reason, e.Err)
}

// Unwrap returns the detail.
func (e *Error) Unwrap() error { return e.Err }

// ErrUnknownTenant is returned by a KeySource that has no keys for a tenant.
var ErrUnknownTenant = errors.New("no keys for this tenant")

func refuse(r Reason, err error) *Error { return &Error{Reason: r, Err: err} }
