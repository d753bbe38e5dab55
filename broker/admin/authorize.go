package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"felix.dev/felix/broker/auth"
)

// TokenAuthorizer is an Authorizer over signed tokens.
type TokenAuthorizer struct {
	// Verifier checks the tokens. Its audiences should be auth.AudienceBroker and
	// auth.AudienceControlPlane.
	Verifier *auth.Verifier
	// SystemTenant is a tenant whose tokens are not confined to its own streams:
	// their permissions alone say how far they reach. It is for an operator that
	// looks after all tenants. Empty: there is none.
	SystemTenant string
}

// Authorize verifies the token with the keys of the tenant that it names.
func (a TokenAuthorizer) Authorize(ctx context.Context, token string) (Principal, error) {
	p, err := a.Verifier.VerifyBearer(ctx, token)
	if err != nil {
		return nil, err
	}
	return tokenPrincipal{p: p, everywhere: a.SystemTenant != "" && p.Tenant == a.SystemTenant}, nil
}

type tokenPrincipal struct {
	p          *auth.Principal
	everywhere bool
}

// ID is "tenant/subject".
func (t tokenPrincipal) ID() string { return t.p.Tenant + "/" + t.p.Subject }

// Allows checks the tenant, unless it is the system's, and the permission.
func (t tokenPrincipal) Allows(action auth.Action, s Name) bool {
	if t.everywhere {
		return t.p.Allows(action, auth.StreamResource(s.Tenant, s.Namespace, s.Stream))
	}
	return t.p.AllowsStream(action, s.Tenant, s.Namespace, s.Stream)
}

// authenticated runs next for callers with a good token.
func (s *Server) authenticated(next func(http.ResponseWriter, *http.Request, Principal) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		token, ok := bearer(r)
		if !ok {
			return unauthenticated("want a bearer token")
		}
		p, err := s.cfg.Authorizer.Authorize(r.Context(), token)
		if err != nil {
			if refused, ok := errors.AsType[*auth.Error](err); ok {
				return unauthenticated("token refused: " + string(refused.Reason))
			}
			return err
		}
		return next(w, r, p)
	}
}

// bearer returns the token of a request with exactly one Authorization header.
func bearer(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

func unauthenticated(message string) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: CodeUnauthenticated, Message: message, Retry: RetryFatal}
}

// mayRead reports whether a stream is to be shown.
func mayRead(p Principal, n Name) bool {
	return p.Allows(auth.StreamManage, n) || p.Allows(auth.StreamSubscribe, n)
}

func forbidden(actions string, n Name) *Error {
	return &Error{
		Status: http.StatusForbidden, Code: CodeForbidden, Retry: RetryFatal,
		Message: "this needs " + actions + " on stream " + n.String(),
	}
}

func requireManage(p Principal, n Name) error {
	if !p.Allows(auth.StreamManage, n) {
		return forbidden(string(auth.StreamManage), n)
	}
	return nil
}
