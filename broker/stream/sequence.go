package stream

import (
	"errors"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// inlineClaims bounds how long a publisher's goroutine sequences for others.
const inlineClaims = 16

// Publish queues a batch. It never waits for a reader or for a commit; the bound
// on what may be queued is the caller's admission. Done is called exactly once.
func (s *Shard) Publish(p *Publish) {
	if s.rep != nil {
		s.hand(p)
		return
	}
	if p.HasProducer {
		p.digest = digestOf(p.Records)
	}
	p.since = time.Time{}
	if s.blockers.any() {
		p.since = s.cfg.Now()
	}
	q := &s.queue
	q.mu.Lock()
	if err := q.closed; err != nil {
		q.mu.Unlock()
		p.Done(Result{Err: err})
		return
	}
	q.waiting = append(q.waiting, p)
	q.bytes += len(p.Records.Bytes)
	start := !q.running && !s.holds()
	if start {
		q.running = true
	}
	q.mu.Unlock()
	if start {
		s.begin()
	}
}

// begin runs the sequencer on this goroutine, or on one of its own where it may wait.
func (s *Shard) begin() {
	if s.blockers.any() {
		s.tasks.Go(func() { s.sequence(false) })
		return
	}
	s.sequence(true)
}

// sequence is the sequencer: one at a time, while there is something to take. A
// publisher's goroutine (inline) does it for a bounded time and never waits in it:
// a blocking subscription that is newer than the look at the blockers cannot be full.
func (s *Shard) sequence(inline bool) {
	q := &s.queue
	for n := 0; ; n++ {
		if inline && (n == inlineClaims || s.blockers.any()) {
			s.tasks.Go(func() { s.sequence(false) })
			return
		}
		q.mu.Lock()
		if len(q.waiting) == 0 || (q.closed == nil && s.holds()) {
			q.running = false
			q.idle.Broadcast()
			q.mu.Unlock()
			return
		}
		c := q.take()
		q.mu.Unlock()
		if !inline {
			if err := s.waitForRoom(c.publishes[0].since, len(c.publishes)); err != nil {
				c.fail(err)
				continue
			}
		}
		s.append(c)
	}
}

// append encodes a claim into the ring, gives it to the log and, for a memory
// stream, commits it. A claim that the log refuses leaves nothing behind.
func (s *Shard) append(c *claim) {
	if err := s.refusing(); err != nil {
		c.fail(err)
		return
	}
	from, place := s.next, s.staging
	end := s.admitProducers(c)
	if len(c.publishes) == 0 && len(c.echoes) == 0 {
		c.release()
		return
	}
	if err := s.reserve(end); err != nil {
		s.producers.forget()
		c.fail(err)
		return
	}
	now := s.cfg.Now().UnixMicro()
	for i := 0; i < len(c.publishes); {
		i = s.stage(c, i, now, true)
	}
	c.end = s.next
	if s.log == nil {
		s.producers.keep()
		s.commit(c)
		return
	}
	c.users.Add(1) // it may be answered before the log has done reading it
	defer c.release()
	s.queue.mu.Lock()
	s.queue.inflight = append(s.queue.inflight, c)
	s.queue.mu.Unlock()
	if err := s.log.Append(c.records); err != nil {
		s.producers.forget()
		failure := appendError(err)
		if errors.Is(err, seglog.ErrPoisoned) { // before the log's own word
			s.failed.Store(failure)
		}
		if s.queue.remove(c) { // else the log was poisoned and the claim is answered
			s.tail.unstage(place.c, place.n)
			s.next, s.staging = from, place
			c.fail(failure)
		}
		return
	}
	s.producers.keep()
}

// admitProducers assigns offsets, answers re-sent idempotent batches and refuses
// wrong ones; what is left in the claim is to be appended and ends at end.
func (s *Shard) admitProducers(c *claim) (end uint64) {
	keep, next := c.publishes[:0], s.next
	for _, p := range c.publishes {
		if p.HasProducer {
			first, err := s.producers.check(p)
			if err != nil {
				p.Done(Result{Err: err})
				continue
			}
			if first != nil {
				s.echo(c, p, *first)
				continue
			}
		}
		p.offset = next
		next += uint64(p.Records.Count)
		if p.HasProducer {
			s.producers.hold(p)
		}
		keep = append(keep, p)
	}
	clear(c.publishes[len(keep):])
	c.publishes = keep
	return next
}

// reserve sees to it that a memory shard's offsets below end are never used again.
func (s *Shard) reserve(end uint64) error {
	if s.log != nil || s.cfg.Reserve == nil || end <= s.reserved {
		return nil
	}
	mark, err := s.cfg.Reserve(end)
	if err != nil {
		return &Error{Code: wire.CodeStorage, Retry: wire.RetryAfter, RetryAfter: diskRetry, Message: "offsets cannot be reserved; nothing was written", Err: err}
	}
	s.reserved = mark
	return nil
}

// echo answers a re-sent batch when the first one is committed.
func (s *Shard) echo(c *claim, p *Publish, first batchMark) {
	p.offset = first.offset
	if first.offset >= s.next { // of this very claim
		c.echoes = append(c.echoes, p)
		return
	}
	if first.end() <= s.mark.Load() {
		p.Done(Result{Offset: p.offset})
		return
	}
	s.queue.mu.Lock()
	for _, earlier := range s.queue.inflight {
		if first.end() <= earlier.end {
			earlier.echoes = append(earlier.echoes, p)
			s.queue.mu.Unlock()
			return
		}
	}
	s.queue.mu.Unlock()
	if err := s.refusing(); err != nil { // its commit failed
		p.Done(Result{Err: err})
		return
	}
	p.Done(Result{Offset: p.offset})
}
