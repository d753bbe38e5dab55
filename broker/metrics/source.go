package metrics

import "time"

// Source is what the broker is at the moment of a scrape. Its methods must not
// block on readers, publishers or disks, and may call back while they hold no
// lock that a publish needs.
type Source interface {
	// State reads the broker-wide gauges.
	State() State
	// Streams calls yield for every stream until it returns false.
	Streams(yield func(StreamState) bool)
	// Subscriptions calls yield for every live subscription until it returns
	// false.
	Subscriptions(yield func(SubscriptionState) bool)
}

// State is the broker as a whole.
type State struct {
	Ready             bool
	Connections       int
	StreamsOpen       int   // QUIC streams in either direction
	IngressBytes      int64 // admitted publishes that are not answered yet
	Egress            EgressTotals
	WAL               WALState
	CertificateExpiry time.Time // of the one that clients are shown; zero: not known
}

// EgressTotals are counters that the egress engine keeps, since the broker started.
type EgressTotals struct{ Bytes, Records, Writes, Wakeups uint64 }

// WALState is the write-ahead log; its counters are since the broker started.
type WALState struct {
	Bytes            int64
	Commits, Appends uint64
	Poisoned         bool // a write failed: nothing is appended until the broker starts again
}

// StreamState is one stream, all of its shards together.
type StreamState struct {
	Stream         string // tenant/namespace/stream
	LogBytes       int64
	TailBytes      int64     // bytes in tail rings
	Records        uint64    // counter: records committed since the broker started
	DroppedRecords uint64    // counter: records its subscriptions were not sent
	Problems       []Problem // one for each shard that has one
}

// Problem is what keeps a shard from serving as it should.
type Problem string

// Problems of shards.
const (
	ProblemUnavailable Problem = "unavailable" // it could not be opened
	ProblemDamaged     Problem = "damaged"     // records that were acknowledged cannot be read
	ProblemPoisoned    Problem = "poisoned"    // a write failed: nothing is appended until it is reopened
	ProblemFull        Problem = "disk_full"   // the last append was refused
	ProblemReadOnly    Problem = "read_only"   // the last append was refused
	ProblemWrite       Problem = "write"       // the last append was refused for another reason
)

// Problems are the values of the problem label.
func Problems() []Problem {
	return []Problem{ProblemUnavailable, ProblemDamaged, ProblemPoisoned, ProblemFull, ProblemReadOnly, ProblemWrite}
}

// SubscriptionState is one live subscription.
type SubscriptionState struct {
	ID         uint64
	Stream     string // tenant/namespace/stream
	State      string // one of SubscriptionStates
	LagRecords uint64
}

// SubscriptionStates are the values of the state label.
func SubscriptionStates() []string { return []string{"live", "behind", "waiting", "blocked"} }
