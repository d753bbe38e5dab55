package stream

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/wire"
)

// blockedRetry is when a publish that was refused for a reader may come again.
const blockedRetry = 250 * time.Millisecond

// blockers are the subscriptions whose lag makes publishers wait.
type blockers struct {
	count   atomic.Int32
	waiting atomic.Bool   // the sequencer waits for one of them
	moved   chan struct{} // capacity 1

	mu   sync.Mutex
	subs map[*Subscription]time.Time // since when it has held the sequencer up; zero: it does not
}

func (b *blockers) any() bool { return b.count.Load() > 0 }

func (b *blockers) add(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.subs[s]; !ok {
		b.count.Add(1)
	}
	b.subs[s] = time.Time{}
}

func (b *blockers) remove(s *Subscription) {
	b.mu.Lock()
	if _, ok := b.subs[s]; ok {
		delete(b.subs, s)
		b.count.Add(-1)
	}
	b.mu.Unlock()
	b.signal()
}

// signal lets a waiting sequencer look again.
func (b *blockers) signal() {
	if b.waiting.Load() {
		select {
		case b.moved <- struct{}{}:
		default:
		}
	}
}

// oldest is the position that a memory shard's ring must keep batches from: what a
// blocking subscription still needs is not evicted.
func (b *blockers) oldest() (at position) {
	at = position{math.MaxUint64, math.MaxUint64}
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if p := s.position(); p.bytes < at.bytes {
			at = p
		}
	}
	return at
}

// full finds a subscription without room behind what is staged, and ends those that
// had none for limit. It returns when the next one's time is up.
func (b *blockers) full(staged, committed position, now time.Time, limit time.Duration) (deadline time.Time, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, since := range b.subs {
		at := s.position()
		if !s.queue.full(staged.minus(at)) {
			b.subs[s] = time.Time{}
			continue
		}
		if since.IsZero() || committed.minus(at) == (position{}) { // the log keeps it waiting
			since = now
			b.subs[s] = now
		}
		if now.Sub(since) >= limit {
			delete(b.subs, s)
			b.count.Add(-1)
			s.overflow.Store(true)
			continue
		}
		if d := since.Add(limit); !held || d.Before(deadline) {
			deadline, held = d, true
		}
	}
	return deadline, held
}

// waitForRoom is OnFull: Block. It waits until no blocking subscription is full,
// ends the ones that stay full for the block timeout, and gives up for the publishes
// at hand when the first, handed in since then, has waited for the publish wait: those
// publishers are told and nothing was written.
func (s *Shard) waitForRoom(since time.Time, publishes int) error {
	if !s.blockers.any() {
		return nil
	}
	b := &s.blockers
	b.waiting.Store(true)
	defer b.waiting.Store(false)
	for s.refusing() == nil { // else append says why
		now := s.cfg.Now()
		if since.IsZero() { // the subscription is newer than the publish
			since = now
		}
		deadline, full := b.full(s.ahead(), s.tail.position(), now, s.cfg.BlockTimeout)
		if !full {
			return nil
		}
		giveUp := since.Add(s.cfg.PublishWait)
		if !now.Before(giveUp) {
			s.blocked.Add(uint64(publishes))
			return &Error{
				Code: wire.CodeOverloaded, Retry: wire.RetryAfter, RetryAfter: blockedRetry, Reason: ReasonSubscriberBlocking,
				Message: "a subscriber under OnFull=Block has no room; nothing was written",
			}
		}
		if giveUp.Before(deadline) {
			deadline = giveUp
		}
		timer := time.NewTimer(deadline.Sub(now))
		select {
		case <-b.moved:
		case <-timer.C:
		case <-s.closing:
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
	return nil
}

// ahead is where the ring ends once what is under way is in it. The sequencer's.
func (s *Shard) ahead() position {
	if s.rep != nil { // the applying goroutine has the staging
		return s.rep.proposed(s.tail.position())
	}
	return s.staging.at
}
