package stream

import (
	"math"

	"felix.dev/felix/broker/wire"
)

// Status is the answer of Next.
type Status uint8

const (
	// Ready comes with a piece to write.
	Ready Status = iota
	// Idle has nothing to write until Changed.
	Idle
	// Ended is over: see Subscription.End.
	Ended
	// Large needs memory of its own for the next frame, much of it: call Next again
	// with that many pageBytes, see Subscription.Need.
	Large
)

// largePiece is how much memory of its own a reader takes for a frame without asking.
const largePiece = 256 << 10

// Next gives the next piece of at most maxBytes, or one whole frame if that is
// larger. pageBytes bounds what is read from the log at once, and what a frame in
// another form takes, unless that is small.
func (s *Subscription) Next(maxBytes, pageBytes int) (Piece, Status) {
	s.need, s.own = 0, max(pageBytes, largePiece)
	for {
		if st, over := s.checkEnd(); over {
			return Piece{}, st
		}
		if s.need > 0 {
			return Piece{}, Large
		}
		if len(s.rest) > 0 {
			if p, ok := s.piece(s.rest, math.MaxUint64, maxBytes); ok { // a page ends below the mark
				s.hand(Behind)
				return p, Ready
			}
			continue
		}
		mark := s.readable() // before visible: what it covers is visible then
		if s.cur.c != nil {
			if p, st, ok := s.fromRing(mark, maxBytes); ok {
				return p, st
			}
			continue
		}
		if s.next.Load() >= mark {
			return Piece{}, s.idle(mark)
		}
		if s.enterRing() {
			continue
		}
		if st, failed := s.readPage(mark, pageBytes); failed {
			return Piece{}, st
		}
	}
}

// Need is how many pageBytes Next takes after it said Large.
func (s *Subscription) Need() int { return s.need }

// Direct gives all that is there if it lies in the ring and is at most maxBytes. It
// is for whoever serves an idle subscription in its feeder's stead; it never reads
// the log.
func (s *Subscription) Direct(maxBytes int) (Piece, bool) {
	if s.stopped.Load() != 0 || s.overflow.Load() || s.over || (s.cur.c == nil && !s.enterRing()) {
		return Piece{}, false
	}
	if s.cur.c.evicted.Load() {
		return Piece{}, false
	}
	p, status := s.Next(maxBytes, maxBytes)
	return p, status == Ready && len(p.Bytes) <= maxBytes
}

// fromRing continues in the ring; ok is false when Next must look again.
func (s *Subscription) fromRing(mark uint64, maxBytes int) (Piece, Status, bool) {
	c := s.cur.c
	after := c.next.Load() // before visible: once it is set, visible is final
	vis := int(c.visible.Load())
	if s.cur.at < vis && !beyond(c.buf[s.cur.at:vis], mark) {
		p, ok := s.piece(c.buf[s.cur.at:vis], mark, maxBytes)
		if ok {
			s.hand(Live)
		}
		return p, Ready, ok
	}
	switch {
	case s.cur.at < vis: // shown by a commit that has not moved the mark yet
		s.pass(mark)
		return Piece{}, s.idle(mark), true
	case after != nil:
		s.cur = cursor{after, 0}
	case c.evicted.Load():
		s.cur = cursor{}
	default:
		s.pass(mark) // what lies between is hidden
		return Piece{}, s.idle(mark), true
	}
	return Piece{}, 0, false
}

// beyond says whether the frame that b starts with is not below the mark.
func beyond(b []byte, mark uint64) bool {
	f, err := wire.PeekOffsetFrame(b)
	return err == nil && f.Base >= mark // of an error piece takes care
}

// enterRing goes live if the cursor is inside the ring.
func (s *Subscription) enterRing() bool {
	cur, pos, into, ok := s.shard.tail.seek(s.next.Load())
	if !ok {
		return false
	}
	s.cur, s.into = cur, into > 0
	s.place(pos)
	s.releasePage()
	return true
}

// pass moves over hidden offsets up to to.
func (s *Subscription) pass(to uint64) {
	if n := s.next.Load(); to > n {
		s.skip += to - n
		s.next.Store(to)
	}
}

// hand notes that a piece is handed out.
func (s *Subscription) hand(st State) {
	s.state.Store(uint32(st))
	s.handed.Store(s.shard.cfg.Now().UnixNano())
}

// Advance moves the cursor over a piece that has reached the QUIC stream.
func (s *Subscription) Advance(p Piece) {
	s.handed.Store(0)
	s.next.Store(p.Next)
	s.entries.Add(uint64(p.entries))
	s.bytes.Add(uint64(p.size))
	s.delivered.Add(uint64(p.Records))
	s.into, s.skip = false, 0
	if len(s.rest) > 0 {
		s.rest = s.rest[p.size:]
	} else {
		s.cur.at += p.size
	}
	s.dropLarge()
	s.checkLag()
	if s.queue.OnFull == Block {
		s.shard.blockers.signal()
	}
}

func (s *Subscription) idle(mark uint64) Status {
	if r := EndReason(s.stopped.Load()); r != 0 && s.readable() == mark {
		return s.ended(r, nil)
	}
	s.idleAt = mark
	s.state.Store(uint32(Waiting))
	if s.over { // it got everything after all
		s.over = false
		if s.queue.OnFull == Block {
			s.shard.blockers.add(s)
		}
	}
	s.releasePage()
	if cap(s.conv) > keptConv {
		s.conv = nil
	}
	return Idle
}

// Changed says whether Next may have something after it said Idle. Read after the
// feeder has made itself wakeable, it closes the gap between the two.
func (s *Subscription) Changed() bool {
	return s.readable() != s.idleAt || s.stopped.Load() != 0 || s.overflow.Load()
}
