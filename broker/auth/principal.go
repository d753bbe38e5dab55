package auth

import "time"

// Principal is who a verified token speaks for. It is immutable; copies of the
// pointer are shared between sessions that came with the same token.
type Principal struct {
	// Subject is the token's sub, never empty.
	Subject string
	// Tenant is the token's tid, never empty. Whoever uses a Principal checks
	// that a request is for this tenant before asking Allows: a grant whose
	// resource is "*" reaches no further than its own tenant.
	Tenant string
	// Expires is the token's exp. An open stream outlives it.
	Expires time.Time

	grants grants
}

// NewPrincipal builds a principal that came by another way than a token: a
// TokenReview, or a test. Permissions that are not understood grant nothing.
func NewPrincipal(subject, tenant string, permissions []string) *Principal {
	return &Principal{Subject: subject, Tenant: tenant, grants: compile(permissions)}
}

// Allows reports whether the principal may do action on resource, as granted
// or as implied by another grant. A nil principal may do nothing.
func (p *Principal) Allows(action Action, resource string) bool {
	return p != nil && p.grants.allows(action, resource)
}

// AllowsStream is Allows for a stream, with the check of the tenant in front.
func (p *Principal) AllowsStream(action Action, tenant, namespace, stream string) bool {
	return p != nil && p.Tenant == tenant && p.grants.allows(action, StreamResource(tenant, namespace, stream))
}
