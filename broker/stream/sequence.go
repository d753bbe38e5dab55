package stream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

const (
	claimPublishes = 64
	claimBytes     = 1 << 20
	// holdBytes is how much is worth writing while an earlier claim is still being
	// synced; less waits for that sync and then shares the next one.
	holdBytes = 256 << 10
	// inlineClaims bounds how long a publisher's goroutine sequences for others.
	inlineClaims = 16
)

// queue is what publishers handed in and the sequencer has not taken.
type queue struct {
	mu       sync.Mutex
	idle     sync.Cond // signalled when running or inflight changes
	waiting  []*Publish
	bytes    int
	running  bool
	closed   error    // non-nil: refuse
	inflight []*claim // appended, not committed; oldest first
}

// claim is what one append takes: some publishes, encoded into some frames.
type claim struct {
	users     atomic.Int32 // the sequencer while it appends, and who answers; the last one releases
	publishes []*Publish
	echoes    []*Publish // re-sent batches, answered with the first one's commit
	frames    []staged
	end       uint64
	records   []seglog.Record
}

// staged is how far a chunk goes once the claim is committed.
type staged struct {
	c       *chunk
	upTo    int
	entries int
}

// staging is where the next frame goes: the ring's end as the sequencer sees it,
// ahead of what readers see.
type staging struct {
	c   *chunk
	n   int    // bytes staged in c
	end uint64 // offset after the last staged record
	at  position
}

// Publish queues a batch. It never waits for a reader or for a commit; the bound
// on what may be queued is the caller's admission. Done is called exactly once.
func (s *Shard) Publish(p *Publish) {
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

// holds says that what waits is better written together after the sync under way.
// The caller holds queue.mu.
func (s *Shard) holds() bool {
	q := &s.queue
	return len(q.inflight) > 0 && len(q.waiting) < claimPublishes && q.bytes < holdBytes
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
			if err := s.waitForRoom(c); err != nil {
				c.fail(err)
				continue
			}
		}
		s.append(c)
	}
}

var claims sync.Pool

// release is called by each user of a claim; the last one gives it back.
func (c *claim) release() {
	if c.users.Add(-1) > 0 {
		return
	}
	clear(c.publishes)
	clear(c.echoes)
	clear(c.frames)
	clear(c.records)
	c.publishes, c.echoes, c.frames, c.records = c.publishes[:0], c.echoes[:0], c.frames[:0], c.records[:0]
	claims.Put(c)
}

// take cuts the next claim off the queue. The caller holds mu.
func (q *queue) take() *claim {
	n, bytes := 0, 0
	for n < len(q.waiting) && n < claimPublishes && (n == 0 || bytes+len(q.waiting[n].Records.Bytes) <= claimBytes) {
		bytes += len(q.waiting[n].Records.Bytes)
		n++
	}
	c, ok := claims.Get().(*claim)
	if !ok {
		c = new(claim)
	}
	c.users.Store(1)
	c.publishes = append(c.publishes, q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	q.bytes -= bytes
	return c
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
		i = s.stage(c, i, now)
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

// stage encodes one frame from publish i on: as many small plain publishes as the
// batch bounds allow, or one idempotent publish, whose record must stay its own.
func (s *Shard) stage(c *claim, i int, now int64) (after int) {
	first := c.publishes[i]
	if first.hidden {
		s.next++
		if s.log != nil {
			c.records = append(c.records, seglog.Record{Kind: seglog.KindGenerationStart, Base: s.next - 1, Count: 1, TimeMicros: now, Frame: first.Records.Bytes})
		}
		return i + 1
	}
	count, bytes := first.Records.Count, len(first.Records.Bytes)
	j := i + 1
	for ; j < len(c.publishes) && !first.HasProducer; j++ {
		p := c.publishes[j]
		if p.HasProducer || p.hidden || int(count+p.Records.Count) > s.cfg.BatchEvents || bytes+len(p.Records.Bytes) > s.cfg.BatchBytes {
			break
		}
		count += p.Records.Count
		bytes += len(p.Records.Bytes)
	}
	size := wire.OffsetFrameOverhead + bytes
	k, b := s.tail.room(s.next, size, s.staging)
	b = wire.BeginOffsetFrame(b, s.next, count, bytes)
	for _, p := range c.publishes[i:j] {
		b = append(b, p.Records.Bytes...)
	}
	if s.log != nil {
		c.records = append(c.records, seglog.Record{
			Kind: seglog.KindEvents, Base: s.next, Count: count, TimeMicros: now,
			HasProducer: first.HasProducer, Producer: first.Producer, Sequence: first.Sequence, Frame: b,
		})
	}
	s.next += uint64(count)
	s.staging = staging{c: k, n: k.staged, end: s.next, at: s.staging.at.plus(1, size)}
	if n := len(c.frames); n > 0 && c.frames[n-1].c == k {
		c.frames[n-1] = staged{k, k.staged, c.frames[n-1].entries + 1}
	} else {
		c.frames = append(c.frames, staged{k, k.staged, 1})
	}
	return j
}

// fail answers every publish of a claim of which nothing was written.
func (c *claim) fail(err error) {
	for _, p := range c.publishes {
		p.Done(Result{Err: err})
	}
	for _, p := range c.echoes {
		p.Done(Result{Err: err})
	}
	c.release()
}

// remove takes back a claim that the log refused.
func (q *queue) remove(c *claim) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.inflight)
	if n == 0 || q.inflight[n-1] != c {
		return false
	}
	q.inflight[n-1] = nil
	q.inflight = q.inflight[:n-1]
	q.idle.Broadcast()
	return true
}

// logCommitted is the log's callback: everything below next is committed, or, with
// an error, nothing more ever will be.
func (s *Shard) logCommitted(next uint64, err error) {
	if err != nil {
		s.poison(err)
		return
	}
	q := &s.queue
	q.mu.Lock()
	n := 0
	for n < len(q.inflight) && q.inflight[n].end <= next {
		n++
	}
	done := append(s.done[:0], q.inflight[:n]...)
	rest := copy(q.inflight, q.inflight[n:])
	clear(q.inflight[rest:])
	q.inflight = q.inflight[:rest]
	start := !q.running && len(q.waiting) > 0 && !s.holds()
	if start {
		q.running = true
	}
	q.idle.Broadcast()
	q.mu.Unlock()
	s.commit(done...)
	clear(done)
	s.done = done
	if start { // not here: the log's goroutine must be free for what an append waits for
		s.tasks.Go(func() { s.sequence(false) })
	}
}

// commit makes claims readable, wakes who waits for them, and answers.
func (s *Shard) commit(cs ...*claim) {
	if len(cs) == 0 {
		return
	}
	for _, c := range cs {
		for _, f := range c.frames {
			s.tail.show(f.c, f.upTo, f.entries)
		}
	}
	s.mark.Store(cs[len(cs)-1].end)
	s.watchers.wake()
	for _, c := range cs {
		for _, p := range c.publishes {
			p.Done(Result{Offset: p.offset})
		}
		for _, p := range c.echoes {
			p.Done(Result{Offset: p.offset})
		}
		c.release()
	}
}

// poison fails what is in flight and refuses what comes: the log could not make it
// durable, and nobody knows what is on the disk.
func (s *Shard) poison(err error) {
	failure := commitError(err)
	s.failed.Store(failure)
	s.queue.mu.Lock()
	lost := s.queue.inflight
	s.queue.inflight = nil
	s.queue.idle.Broadcast()
	start := !s.queue.running && len(s.queue.waiting) > 0
	if start {
		s.queue.running = true
	}
	s.queue.mu.Unlock()
	for _, c := range lost {
		c.fail(failure)
	}
	if start {
		s.tasks.Go(func() { s.sequence(false) })
	}
}
