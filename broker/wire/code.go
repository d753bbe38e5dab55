package wire

import "strconv"

// Code is the number of an error on the wire.
type Code uint16

// Error codes.
const (
	CodeUnauthenticated  Code = 1
	CodeForbidden        Code = 2
	CodeNotFound         Code = 3
	CodeInvalidRequest   Code = 4
	CodeShardUnavailable Code = 5
	CodeNotLeader        Code = 6
	CodeQuorumTimeout    Code = 7
	CodeLeadershipLost   Code = 8
	CodeUnacknowledged   Code = 9
	CodeOverloaded       Code = 10
	CodeLimitExceeded    Code = 11
	CodeDraining         Code = 12
	CodeInternal         Code = 13
	CodeStorage          Code = 14
	CodeStaleClaim       Code = 15
)

// codes is indexed by Code.
var codes = [...]struct {
	name  string
	retry Retry
}{
	CodeUnauthenticated:  {"unauthenticated", RetryFatal},
	CodeForbidden:        {"forbidden", RetryFatal},
	CodeNotFound:         {"not_found", RetryAfter},
	CodeInvalidRequest:   {"invalid_request", RetryFatal},
	CodeShardUnavailable: {"shard_unavailable", RetryNow},
	CodeNotLeader:        {"not_leader", RetryRedirect},
	CodeQuorumTimeout:    {"quorum_timeout", RetryOutcomeUnknown},
	CodeLeadershipLost:   {"leadership_lost", RetryOutcomeUnknown},
	CodeUnacknowledged:   {"unacknowledged", RetryOutcomeUnknown},
	CodeOverloaded:       {"overloaded", RetryAfter},
	CodeLimitExceeded:    {"limit_exceeded", RetryFatal},
	CodeDraining:         {"draining", RetryNow},
	CodeInternal:         {"internal", RetryOutcomeUnknown},
	CodeStorage:          {"storage", RetryOutcomeUnknown},
	CodeStaleClaim:       {"stale_claim", RetryNow},
}

func (c Code) known() bool { return c > 0 && int(c) < len(codes) }

// String is the name used in JSON.
func (c Code) String() string {
	if c.known() {
		return codes[c].name
	}
	return "code_" + strconv.Itoa(int(c))
}

// DefaultRetry is the class a code has unless the sender knows better. An
// unknown code is fatal.
func (c Code) DefaultRetry() Retry {
	if c.known() {
		return codes[c].retry
	}
	return RetryFatal
}

// ParseCode finds a code by its name. A later release may send names that are
// not known here: the name is then all there is.
func ParseCode(name string) (Code, bool) {
	for c, v := range codes {
		if v.name == name && name != "" {
			return Code(c), true
		}
	}
	return 0, false
}

// Retry is the class of an error: what may be done about it.
type Retry uint8

// Retry classes.
const (
	RetryNow            Retry = 1 // nothing applied, send again
	RetryAfter          Retry = 2 // nothing applied, wait first
	RetryRedirect       Retry = 3 // nothing applied, ask another broker
	RetryOutcomeUnknown Retry = 4 // may have been applied
	RetryFatal          Retry = 5 // will fail again
)

var retryNames = [...]string{
	RetryNow:            "retry",
	RetryAfter:          "retry_after",
	RetryRedirect:       "redirect",
	RetryOutcomeUnknown: "outcome_unknown",
	RetryFatal:          "fatal",
}

func (r Retry) valid() bool { return r >= RetryNow && r <= RetryFatal }

// String is the name used in JSON. A value that is no class reads as fatal.
func (r Retry) String() string {
	if r.valid() {
		return retryNames[r]
	}
	return retryNames[RetryFatal]
}

// ParseRetry finds a class by its name; an unknown one is fatal.
func ParseRetry(name string) Retry {
	for r, n := range retryNames {
		if n == name && name != "" {
			return Retry(r)
		}
	}
	return RetryFatal
}
