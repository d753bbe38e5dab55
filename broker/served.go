package broker

import (
	"iter"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// served is a stream of the catalog as this broker serves it. Immutable: a change
// replaces it.
type served struct {
	entry  catalog.Entry
	stream *stream.Stream // nil: it cannot be served, or not now
	// refusal is what clients are told without a stream.
	refusal *stream.Error
	shards  []openShard // nil without a stream, and in a cluster
	// find gives, in a cluster, the shard of that number if its records are on this
	// broker, and else nil.
	find func(shard int) *openShard
	// leader is, in a cluster, the node that leads a shard's group; empty: nobody is known.
	leader func(shard int) string
	// problem is why it cannot be opened; nil: it can.
	problem *problem
	// before counts what happened under the catalog's entry until it was opened the
	// last time, for counters that must not go down.
	before counts
}

// counts are since the broker started.
type counts struct{ records, dropped uint64 }

// openShard is a shard and where it stood when it was opened.
type openShard struct {
	*stream.Shard
	health   *health
	openedAt uint64
	segments *seglog.Log // nil: a memory shard, or a replica
}

// counted is what was committed, and what subscriptions were not sent.
func (s *served) counted() counts {
	n := s.before
	for _, k := range s.here() {
		i := k.Info()
		n.records += i.Mark - k.openedAt
		n.dropped += i.Dropped
	}
	return n
}

// here are the shards whose records are on this broker, by number.
func (s *served) here() iter.Seq2[int, *openShard] {
	return func(yield func(int, *openShard) bool) {
		for i := range int(s.entry.Spec.Shards) {
			if k := s.shard(i); k != nil && !yield(i, k) {
				return
			}
		}
	}
}

// shard is the shard of that number, if its records are on this broker, and else nil.
func (s *served) shard(i int) *openShard {
	switch {
	case s.find != nil:
		return s.find(i)
	case i < len(s.shards):
		return &s.shards[i]
	}
	return nil
}

// problem is what an operator should look at, given how the shard stands; nil: nothing.
func (k *openShard) problem(info *stream.ShardInfo) *problem {
	if info.Err != nil {
		return poisonedProblem(info.Err)
	}
	return k.health.problem()
}

// unavailable is a stream without shards.
func unavailable(e *catalog.Entry, problem *problem, refusal *stream.Error) *served {
	return &served{entry: *e, refusal: refusal, problem: problem}
}

func nameOf(n catalog.Name) stream.Name {
	return stream.Name{Tenant: n.Tenant, Namespace: n.Namespace, Stream: n.Stream}
}

func durabilityOf(d catalog.Durability) stream.Durability {
	switch d {
	case catalog.Memory:
		return stream.Memory
	case catalog.Quorum:
		return stream.Quorum
	default:
		return stream.Durable
	}
}
