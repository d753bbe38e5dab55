package stream

// Lead lets subscriptions in. The mark then includes all that was committed before:
// the caller has seen to it.
func (s *Shard) Lead() {
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	if !s.rep.serving.Load() {
		s.tail.clear() // what was left in it does not end where the log does
		s.rep.serving.Store(true)
	}
	s.subs.leads = true
}

// Pause lets no more subscriptions in, and keeps those that are here. Lead undoes it.
func (s *Shard) Pause() {
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	s.subs.leads = false
}

// Unlead lets no more subscriptions in and ends those that are here: with EndMoved
// once they have what is committed now, or at once if they read history; with
// EndDeposed where they stand.
func (s *Shard) Unlead(reason EndReason, to *Moved) {
	s.subs.mu.Lock()
	s.subs.leads = false
	mark := s.mark.Load()
	all := make([]*Subscription, 0, len(s.subs.byID))
	for _, sub := range s.subs.byID {
		until := mark
		if next := sub.next.Load(); next < sub.live || State(sub.state.Load()) == Behind {
			until = next
		}
		sub.until.Store(min(until, sub.until.Load()))
		sub.moved.Store(to)
		all = append(all, sub)
	}
	// Only now: whoever stands at the ring's end takes what lies between it and what he
	// may read for hidden.
	served := s.rep.serving.Swap(false)
	s.subs.mu.Unlock()
	for _, sub := range all {
		sub.Stop(reason)
	}
	if served {
		s.tail.clear()
	}
}

// Leads says whether subscriptions are taken.
func (s *Shard) Leads() bool {
	if s.rep == nil {
		return true
	}
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	return s.subs.leads
}

// readable is the mark, or what a reader that is being ended still gets.
func (s *Subscription) readable() uint64 { return min(s.shard.mark.Load(), s.until.Load()) }
