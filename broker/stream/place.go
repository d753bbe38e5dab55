package stream

// Place is where the records of a shard go and come from, as one broker sees it. A
// *Shard is a place that is always here. Values are compared, and one stands for the
// same shard for as long as that exists.
type Place interface {
	// Publish takes a batch as Shard.Publish does, wherever the shard is: Done is called
	// exactly once.
	Publish(*Publish)
	// Here gives the shard if this broker serves it, and else who does. One of the two
	// is nil.
	Here() (*Shard, *Elsewhere)
	// Generation counts the changes of who serves the shard; 0 outside of a cluster.
	Generation() uint64
}

// Elsewhere says who serves a shard that this broker does not serve.
type Elsewhere struct {
	// NodeID and Addr, its address for clients, are set together: nobody is named by
	// guess. Empty: Reason says why there is nobody, for now.
	NodeID, Addr string
	Generation   uint64
	Reason       string
}

// Reasons why nobody serves a shard for the moment.
const (
	// ReasonNotReady is a leader that cannot say yet what is readable, or none yet.
	ReasonNotReady = "not_ready"
	// ReasonNotAssigned is a shard that was not given to anybody yet.
	ReasonNotAssigned = "not_assigned"
	// ReasonOwnerUnavailable is a shard whose broker is away.
	ReasonOwnerUnavailable = "owner_unavailable"
	// ReasonMoving is a shard on its way from one broker to another.
	ReasonMoving = "moving"
)

// Owner is another broker that has written a batch.
type Owner struct {
	NodeID, Addr string // Addr is for clients; empty: not known
	Generation   uint64
}

// Here is the shard itself.
func (s *Shard) Here() (*Shard, *Elsewhere) { return s, nil }

// Generation is 0: the shard is not known to be one of a cluster's.
func (s *Shard) Generation() uint64 { return 0 }
