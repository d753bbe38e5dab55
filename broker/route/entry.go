package route

import (
	"errors"
	"sync"
	"time"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// entry is one publish on its way. They are pooled.
type entry struct {
	place *Place
	pub   *stream.Publish
	done  func(stream.Result) // the publisher's
	local func(stream.Result) // for a shard that is here: bound once
	last  error               // why it was not taken the last time
	seq   uint64              // its turn in its place

	deadline time.Time     // it is answered by then; zero: it never waited and was never sent to others
	heldAt   time.Time     // since when it waits for somebody; zero: it does not
	held     time.Duration // how long it did before
	maybe    bool          // it was sent to somebody and may have been written

	// Of its link, and guarded by link.mu once it is there.
	id       uint64 // on the connection
	round    uint32
	owner    *stream.Owner
	early    stream.Result // with hasEarly: came before the writer was done with it
	hint     State         // with hasEarly: what came with it
	hasEarly bool
}

var entries sync.Pool

func newEntry(p *Place, pub *stream.Publish) *entry {
	e, ok := entries.Get().(*entry)
	if !ok {
		e = new(entry)
		e.local = e.answeredHere
	}
	e.place, e.pub, e.done = p, pub, pub.Done
	return e
}

// size is what an entry counts for: its records and what surrounds them.
func (e *entry) size() int64 {
	const around = 256
	return int64(len(e.pub.Records.Bytes)) + around
}

// resultLabel is what a publish came to, for those who count.
func resultLabel(err error) metrics.ForwardResult {
	e, ok := errors.AsType[*stream.Error](err)
	switch {
	case err == nil:
		return metrics.ForwardWritten
	case ok && e.Retry == wire.RetryOutcomeUnknown:
		return metrics.ForwardUnknown
	case ok && (e.Code == wire.CodeShardUnavailable || e.Code == wire.CodeDraining):
		return metrics.ForwardUnavailable
	}
	return metrics.ForwardRefused
}

// finish answers the publish. Nobody may hold e afterwards.
func (e *entry) finish(r stream.Result) {
	pub, done := e.pub, e.done
	if !e.deadline.IsZero() {
		e.place.f.m.Publishes.With(resultLabel(r.Err)).Inc()
	}
	*e = entry{local: e.local}
	entries.Put(e)
	pub.Done = done
	done(r)
}

func (e *entry) answeredHere(r stream.Result) { e.place.answered(e, r, false) }

// due is when e is given up. The hold counts while nobody is known to take it.
func (e *entry) due(hold time.Duration, held bool) time.Time {
	if held && !e.heldAt.IsZero() {
		if t := e.heldAt.Add(hold - e.held); t.Before(e.deadline) {
			return t
		}
	}
	return e.deadline
}
