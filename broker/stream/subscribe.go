package stream

import (
	"fmt"
	"math"
	"sort"

	"felix.dev/felix/broker/wire"
)

// SubscribeOptions is what a reader asks for and what its client can read.
type SubscribeOptions struct {
	ID    uint64 // unique in the process
	Start wire.Start
	// What the client offered: frames with offsets, with skipped_before, and the
	// subscription_lagged and shard_moved notices.
	Offsets, Skips, Lagged, Moved bool
	QueueEntries                  int // 0: the shard's
	// Conn and Principal are labels for people who ask who is slow.
	Conn, Principal string
}

// Subscribe registers a reader. The live position is taken before any history is
// read, so nothing falls between the two.
func (s *Shard) Subscribe(o SubscribeOptions) (*Subscription, error) {
	sub := &Subscription{shard: s, opts: o, queue: *s.subsQueue.Load(), since: s.cfg.Now()}
	if o.QueueEntries > 0 {
		sub.queue.Entries = o.QueueEntries
	}
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	if s.subs.end != 0 {
		return nil, closedError(s.subs.end)
	}
	if s.rep != nil && !s.subs.leads {
		return nil, notLeading()
	}
	sub.until.Store(math.MaxUint64)
	mark := s.mark.Load()
	start, err := s.resolve(o.Start, mark)
	if err != nil {
		return nil, err
	}
	if d := s.damaged.Load(); d != nil && d.offset == start {
		return nil, d.refusal()
	}
	sub.start, sub.live, sub.idleAt = start, mark, mark
	sub.next.Store(start)
	s.subs.byID[o.ID] = sub
	if start == mark && sub.queue.OnFull != CatchUp {
		at := s.tail.position() // not before mark, but perhaps behind a commit under way
		if s.tail.keep != nil {
			if _, exact, _, ok := s.tail.seek(mark); ok { // what it needs must be kept from now on
				at = exact
			}
		}
		sub.arm(at)
	}
	return sub, nil
}

// resolve turns a wanted start into an offset that can be read, given the readable end.
func (s *Shard) resolve(w wire.Start, mark uint64) (uint64, error) {
	switch w.Kind {
	case wire.StartEarliest:
		return min(s.Oldest(), mark), nil
	case wire.StartOffset:
		if oldest := s.Oldest(); w.Offset < oldest {
			return 0, &CursorError{TooOld, w.Offset, oldest}
		}
		if w.Offset > mark {
			return 0, &CursorError{InFuture, w.Offset, mark}
		}
		return w.Offset, nil
	default:
		return mark, nil
	}
}

// damage is where a reader met a log that cannot be read on.
type damage struct {
	offset uint64
	err    error
}

// refusal is for readers that would begin at the damage: those who were ended there
// come back to it, and would for ever.
func (d *damage) refusal() *Error {
	return &Error{
		Code: wire.CodeStorage, Retry: wire.RetryFatal, Err: d.err,
		Message: fmt.Sprintf("the log is damaged at offset %d and cannot be read from there", d.offset),
	}
}

func (s *Shard) unregister(sub *Subscription) {
	s.subs.mu.Lock()
	if s.subs.byID[sub.opts.ID] == sub {
		delete(s.subs.byID, sub.opts.ID)
	}
	s.subs.mu.Unlock()
	s.blockers.remove(sub)
}

// endSubscriptions lets no new reader in and tells those that are here.
func (s *Shard) endSubscriptions(reason EndReason) {
	s.subs.mu.Lock()
	s.subs.end = reason
	all := make([]*Subscription, 0, len(s.subs.byID))
	for _, sub := range s.subs.byID {
		all = append(all, sub)
	}
	s.subs.mu.Unlock()
	for _, sub := range all {
		sub.Stop(reason)
	}
}

// End ends the subscription with that id, as its client were told nothing; false if
// there is none here.
func (s *Shard) End(id uint64) bool {
	s.subs.mu.Lock()
	sub := s.subs.byID[id]
	s.subs.mu.Unlock()
	if sub != nil {
		sub.Stop(EndRemoved)
	}
	return sub != nil
}

// Subscriptions describes all readers, in the order of their ids.
func (s *Shard) Subscriptions() []SubscriptionInfo {
	s.subs.mu.Lock()
	all := make([]SubscriptionInfo, 0, len(s.subs.byID))
	for _, sub := range s.subs.byID {
		all = append(all, sub.Info())
	}
	s.subs.mu.Unlock()
	sort.Slice(all, func(i, j int) bool { return all[i].ID < all[j].ID })
	return all
}
