package stream

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/wire"
)

// Proposer takes the publishes of a replicated shard on their way to the replicas.
type Proposer interface {
	// Propose never blocks. It calls p.Done exactly once: with what [Shard.Apply] said
	// of it, with a refusal, or with an error that wraps ErrOutcomeUnknown.
	Propose(s *Shard, p *Publish)
}

// Replicated is what makes a shard a replica.
type Replicated struct {
	Proposer Proposer
	// Log holds what was applied, perhaps more than State knows of: that is then
	// applied again and skipped.
	Log Log
	// State is where the shard stands. Of a new shard only First and Next are set, equal.
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
	Producers []byte // what is remembered of idempotent producers; nil: nothing
}

// Batch is one publish as the replicas agreed on it.
type Batch struct {
	Records            wire.Records
	HasProducer        bool
	Producer, Sequence uint64
}

// replica is what a replicated shard has beside others. Of the fields without a comment
// the applying goroutine is the owner.
type replica struct {
	Replicated
	oldest  atomic.Uint64
	serving atomic.Bool // records go into the ring as well
	flight  struct{ entries, bytes atomic.Int64 }

	term   uint64
	sealed bool

	publishes []Publish // scratch of Apply
	encoded   []byte    // the producers as of encodedAt changes; never changed
	encodedAt uint64
}

// OpenReplica makes a shard whose order is decided elsewhere: publishes go to the
// proposer, records come through Apply. It does not lead.
func OpenReplica(cfg Config, r Replicated) (*Shard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if r.Proposer == nil || r.Log == nil {
		return nil, errors.New("stream: a replica needs a proposer and a log")
	}
	cfg.setDefaults()
	s := newShard(cfg)
	s.rep, s.log = &replica{Replicated: r}, r.Log
	if err := s.Restore(r.State); err != nil {
		return nil, err
	}
	return s, nil
}

// State is the shard as of the last Apply. The applying goroutine's.
func (s *Shard) State() ReplicaState {
	r := s.rep
	return ReplicaState{
		First: r.State.First, Next: s.next, Oldest: r.oldest.Load(),
		Term: r.term, Sealed: r.sealed, Producers: r.encode(s.producers),
	}
}

// encode gives the bytes of before while nothing has changed: snapshots of a group take
// all shards, of which few have.
func (r *replica) encode(ps *producers) []byte {
	if len(ps.byID) == 0 {
		return nil
	}
	if r.encoded == nil || r.encodedAt != ps.changes {
		r.encoded, r.encodedAt = ps.snapshot(), ps.changes
	}
	return r.encoded
}

// Restore puts the shard where another replica stands. What lies between State.Oldest
// and State.Next is to be in the log before anybody reads. The applying goroutine's.
func (s *Shard) Restore(st ReplicaState) error {
	if st.Next < st.First || st.Oldest > st.Next {
		return fmt.Errorf("stream: %s shard %d: a state from offset %d to %d, readable from %d, cannot be", s.cfg.Name, s.cfg.Shard, st.First, st.Next, st.Oldest)
	}
	producers := newProducers()
	if len(st.Producers) > 0 {
		if err := producers.restore(st.Producers); err != nil {
			return err
		}
	}
	r := s.rep
	r.State.First = st.First
	r.oldest.Store(max(st.Oldest, st.First))
	r.term = st.Term
	s.producers, s.next, r.encoded = producers, st.Next, nil
	s.mark.Store(st.Next)
	s.watchers.wake()
	if st.Sealed {
		s.Seal()
	}
	return nil
}

// Seal refuses all later batches, ends readers with EndDeleted behind what is there,
// and gives the end. The applying goroutine's.
func (s *Shard) Seal() (end uint64) {
	s.rep.sealed = true
	s.endSubscriptions(EndDeleted)
	return s.next
}

// TrimBefore moves the first offset that can be read. The applying goroutine's.
func (s *Shard) TrimBefore(oldest uint64) {
	r := s.rep
	r.oldest.Store(max(r.oldest.Load(), min(oldest, s.next)))
}

// Repaired says that the log can be read again where Damaged had said it cannot.
func (s *Shard) Repaired() { s.damaged.Store(nil) }

// Configure changes the bounds of the ring and, for those who come from now on, of
// subscriptions.
func (s *Shard) Configure(q Queue, tailBytes int64) error {
	next := s.cfg
	next.Queue, next.TailBytes = q, tailBytes
	if err := next.Validate(); err != nil {
		return err
	}
	next.setDefaults()
	s.subsQueue.Store(&next.Queue)
	s.tail.bound(next.TailBytes)
	return nil
}

// hand gives a publish to the proposer: at once, or behind others that wait for a
// reader's room.
func (s *Shard) hand(p *Publish) {
	q := &s.queue
	q.mu.Lock()
	if err := q.closed; err != nil {
		q.mu.Unlock()
		p.Done(Result{Err: err})
		return
	}
	if !q.running && !s.blockers.any() {
		q.mu.Unlock()
		s.rep.Proposer.Propose(s, p)
		return
	}
	p.since = s.cfg.Now()
	q.waiting = append(q.waiting, p)
	q.bytes += len(p.Records.Bytes)
	start := !q.running
	q.running = true
	q.mu.Unlock()
	if start {
		s.tasks.Go(s.handWaiting)
	}
}

// handWaiting proposes what waits, as readers under Block leave room for it.
func (s *Shard) handWaiting() {
	q := &s.queue
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.running = false
			q.idle.Broadcast()
			q.mu.Unlock()
			return
		}
		c := q.take()
		q.mu.Unlock()
		for _, p := range c.publishes {
			if err := s.waitForRoom(p.since, 1); err != nil {
				p.Done(Result{Err: err})
				continue
			}
			s.rep.Proposer.Propose(s, s.rep.count(p))
		}
		c.release()
	}
}

// count has a publish count as lag of blocking readers until it is answered: nobody
// sees it in the ring before.
func (r *replica) count(p *Publish) *Publish {
	done, bytes := p.Done, int64(len(p.Records.Bytes)+wire.OffsetFrameOverhead)
	r.flight.entries.Add(1)
	r.flight.bytes.Add(bytes)
	p.Done = func(res Result) {
		r.flight.entries.Add(-1)
		r.flight.bytes.Add(-bytes)
		done(res)
	}
	return p
}

// proposed is where the ring ends once what is under way is in it.
func (r *replica) proposed(at position) position {
	return at.plus(int(max(r.flight.entries.Load(), 0)), int(max(r.flight.bytes.Load(), 0)))
}

// notLeading refuses what only the leader takes.
func notLeading() *Error {
	return &Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: ReasonMoving,
		RetryAfter: 100 * time.Millisecond, Message: "another broker leads the shard, or will in a moment", Err: ErrNotLeader,
	}
}
