package stream

import (
	"errors"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// Proposer takes the publishes of a replicated shard on their way to the replicas.
type Proposer interface {
	// Propose never blocks. It calls p.Done exactly once: with what [Shard.Apply] said
	// of it, with a refusal that wraps ErrNotLeader, or with ErrOutcomeUnknown.
	Propose(s *Shard, p *Publish)
}

// Replicated is what makes a shard a replica.
type Replicated struct {
	Proposer Proposer
	// Log holds what was applied, perhaps more than State knows of: that is then
	// applied again and skipped.
	Log Log
	// State is where the shard stands. The zero value with First and Next set is a new shard.
	State ReplicaState
	// Damaged is told when a reader meets damage in the log. It must not block. nil: nobody is.
	Damaged func(error)
}

// ReplicaState is what a replica knows beside its log: the same on all replicas that
// have applied the same.
type ReplicaState struct {
	First     uint64 // offset of the first record ever
	Next      uint64
	Oldest    uint64 // readers are told that older ones are gone
	Term      uint64 // of the newest record; 0: there is none
	Sealed    bool   // nothing is appended any more
	Producers []byte // what is remembered of idempotent producers
}

// Batch is one publish as the replicas agreed on it.
type Batch struct {
	Records            wire.Records
	HasProducer        bool
	Producer, Sequence uint64
}

// OpenReplica makes a shard whose order is decided elsewhere: publishes go to the
// proposer, records come through Apply. It does not lead.
func OpenReplica(cfg Config, r Replicated) (*Shard, error) {
	return nil, errors.New("stream: not there yet")
}

// Apply appends what the replicas agreed on, in their order, and says for each batch
// what came of it; results has room for that. term and at (microseconds) are the same
// on every replica. What the log holds already is not written again. After an error
// nothing has changed, and the call is to be made again. One goroutine at a time
// applies.
func (s *Shard) Apply(term uint64, at int64, batches []Batch, results []Result) error { return nil }

// State is the shard as of the last Apply. The applying goroutine's.
func (s *Shard) State() ReplicaState { return ReplicaState{} }

// Restore puts the shard where another replica stands. The log must reach there. The
// applying goroutine's.
func (s *Shard) Restore(st ReplicaState) error { return nil }

// Seal refuses all later batches, ends readers with EndDeleted behind what is there,
// and gives the end. The applying goroutine's.
func (s *Shard) Seal() (end uint64) { return 0 }

// TrimBefore moves the first offset that can be read. The applying goroutine's.
func (s *Shard) TrimBefore(oldest uint64) {}

// Configure changes the bounds of the ring and of readers to come.
func (s *Shard) Configure(q Queue, tailBytes int64) error { return nil }

// Lead lets subscriptions in.
func (s *Shard) Lead() {}

// Pause lets no more subscriptions in, and keeps those that are here. Lead undoes it.
func (s *Shard) Pause() {}

// Unlead lets no more subscriptions in and ends those that are here: with EndMoved
// once they have what is committed now, with EndDeposed where they stand.
func (s *Shard) Unlead(reason EndReason, to *Moved) {}

// Leads says whether subscriptions are taken.
func (s *Shard) Leads() bool { return false }

var _ = seglog.KindEvents
