package stream

// OnFull says what happens when a subscription's lag passes its bound.
type OnFull uint8

const (
	// DropNew drops what arrives beyond the bound for that subscription.
	DropNew OnFull = iota
	// Block makes publishers wait for room, for a bounded time.
	Block
	// CatchUp lets the subscription go on from the log at its own pace.
	CatchUp
)

// String is the name used in the catalog and on the command line.
func (o OnFull) String() string {
	switch o {
	case DropNew:
		return "DropNew"
	case Block:
		return "Block"
	case CatchUp:
		return "CatchUp"
	}
	return "Unknown"
}

// ParseOnFull reads the name of a policy.
func ParseOnFull(s string) (OnFull, bool) {
	for _, o := range []OnFull{DropNew, Block, CatchUp} {
		if o.String() == s {
			return o, true
		}
	}
	return 0, false
}

// Queue bounds a subscription's lag: the batches between its cursor and the
// committed tail, in entries and in bytes, whichever is reached first.
type Queue struct {
	Entries int
	Bytes   int64
	OnFull  OnFull
}

func (q Queue) exceeded(lag position) bool {
	return lag.entries > uint64(q.Entries) || lag.bytes > uint64(q.Bytes)
}

func (q Queue) full(lag position) bool {
	return lag.entries >= uint64(q.Entries) || lag.bytes >= uint64(q.Bytes)
}

// bound is the last position that a reader standing at p is still owed.
func (q Queue) bound(p position) position { return p.plus(q.Entries, int(q.Bytes)) }

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
	mark := s.readable()
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
