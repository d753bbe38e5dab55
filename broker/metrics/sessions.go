package metrics

import "github.com/prometheus/client_golang/prometheus"

// RejectReason is why a connection or a stream of it was turned away before it
// could do anything.
type RejectReason string

// Reasons for turning a connection away.
const (
	RejectConnections RejectReason = "connection_limit" // broker-wide
	RejectAddress     RejectReason = "address_limit"    // of one remote address
	RejectHandshake   RejectReason = "handshake"        // TLS or ALPN
	RejectAuthTimeout RejectReason = "auth_timeout"     // did not authenticate in time
	RejectAuth        RejectReason = "unauthenticated"
	RejectDraining    RejectReason = "draining"
	RejectProtocol    RejectReason = "protocol" // broke the protocol before authenticating
)

// AuthResult is what a token check came to: AuthOK, or the reason of package
// auth.
type AuthResult string

// AuthOK is a token that was accepted.
const AuthOK AuthResult = "ok"

var authResults = []AuthResult{
	AuthOK, "missing", "malformed", "algorithm", "unknown_tenant", "signature",
	"expired", "not_yet_valid", "issuer", "audience", "subject", "tenant",
}

// Sessions is updated by the server.
type Sessions struct {
	Accepted prometheus.Counter
	Rejected Counters[RejectReason]
	Auth     Counters[AuthResult]
}

func newSessions(b *builder) Sessions {
	return Sessions{
		Accepted: b.counter("felix_connections_accepted_total", "Connections whose handshake completed."),
		Rejected: counters(b, "felix_sessions_rejected_total",
			"Connections or their streams turned away before they could do anything.", "reason",
			[]RejectReason{
				RejectConnections, RejectAddress, RejectHandshake, RejectAuthTimeout,
				RejectAuth, RejectDraining, RejectProtocol,
			}),
		Auth: counters(b, "felix_auth_total", "Token checks, by what they came to.", "result", authResults),
	}
}
