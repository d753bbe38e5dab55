package stream

// arm makes the lag bound count, from a position on.
func (s *Subscription) arm(at position) {
	if s.armed.Load() {
		return
	}
	s.place(at)
	s.armed.Store(true)
	if s.queue.OnFull == Block {
		s.shard.blockers.add(s)
	}
}

// checkLag holds the lag against the bound, when the cursor has just moved over what
// was written. While that write was under way its piece had left the queue and the
// rest stood still, so looking now gives the verdict that every commit would have.
func (s *Subscription) checkLag() {
	if s.queue.OnFull == CatchUp || s.over {
		return
	}
	lag := s.shard.tail.position().minus(s.position())
	if !s.armed.Load() {
		// History below live is paced by the reader; the bound counts from the moment
		// it has caught up.
		if s.cur.c != nil && s.next.Load() >= s.live && !s.queue.exceeded(lag) {
			s.arm(s.position())
		}
		return
	}
	if s.queue.OnFull == Block {
		return // the sequencer looks after it
	}
	if s.queue.exceeded(lag) {
		s.over, s.limit = true, s.queue.bound(s.position())
	}
}

// owed says whether a piece is within what an overflown subscription still gets.
func (s *Subscription) owed(entries, bytes int) bool {
	to := s.position().plus(entries, bytes)
	return !s.over || (to.entries <= s.limit.entries && to.bytes <= s.limit.bytes)
}

// lose is where the bound, or a memory stream's ring, ends: the cursor's offset is
// the first that is not delivered.
func (s *Subscription) lose() {
	next := s.next.Load()
	mark := max(s.shard.mark.Load(), next) // the ring shows a commit before the mark does
	s.dropped.Add(mark - next)
	s.shard.dropped.Add(mark - next)
	if s.Lagged() {
		s.hand(State(s.state.Load())) // the notice is a write as well, and may take as long
		s.ended(EndLagged, nil)
		return
	}
	// The client cannot be told: it goes on at the tail, and the jump in offsets is
	// the drop.
	s.over, s.into, s.skip, s.rest = false, false, 0, nil
	s.cur = cursor{}
	s.next.Store(mark)
	s.place(s.shard.tail.position())
	if s.queue.OnFull == Block {
		s.shard.blockers.add(s)
	}
}

// checkEnd says whether Next has nothing more to look for.
func (s *Subscription) checkEnd() (Status, bool) {
	if s.end.Reason != 0 {
		return Ended, true
	}
	switch r := EndReason(s.stopped.Load()); r {
	case 0, EndDeleted, EndShutdown: // what is committed is delivered first
	default:
		return s.ended(r, nil), true
	}
	if s.overflow.Load() {
		s.overflow.Store(false)
		s.over, s.limit = true, s.position()
	}
	return 0, false
}

func (s *Subscription) ended(r EndReason, err error) Status {
	if s.end.Reason == 0 {
		s.end = End{Reason: r, Next: s.next.Load(), Err: err}
		if s.queue.OnFull == Block { // its client is yet to be told, which publishers need not wait for
			s.shard.blockers.remove(s)
		}
	}
	return Ended
}

// End is why Next said Ended.
func (s *Subscription) End() End { return s.end }
