package metrics

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
	Ready              bool
	Connections        int
	StreamsOpen        int   // QUIC streams in either direction
	IngressBytes       int64 // admitted publishes that are not answered yet
	EgressPendingBytes int64 // read from ring or log, not accepted by QUIC yet
}

// StreamState is one stream, all of its shards together.
type StreamState struct {
	Stream         string // tenant/namespace/stream
	LogBytes       int64
	TailBytes      int64  // bytes in tail rings
	Records        uint64 // counter: records committed since the broker started
	DroppedRecords uint64 // counter: records its subscriptions were not sent
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
