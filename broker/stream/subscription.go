package stream

import (
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/wire"
)

// State is what a subscription is doing.
type State uint32

const (
	// Waiting has nothing to send.
	Waiting State = iota
	// Live writes from the tail ring.
	Live
	// Behind writes from the log.
	Behind
	// Blocked has had a write under way for a while.
	Blocked
)

// blockedAfter is how long a write is under way before its subscription is called
// blocked.
const blockedAfter = time.Second

func (s State) String() string {
	return [...]string{"waiting", "live", "behind", "blocked"}[min(s, Blocked)]
}

// EndReason says why a subscription is over.
type EndReason uint8

const (
	// EndCancelled is the client's own doing, or its connection's end.
	EndCancelled EndReason = iota + 1
	// EndLagged passed the lag bound: everything below Next was delivered.
	EndLagged
	// EndTooOld wants what retention has taken.
	EndTooOld
	// EndCorrupt met damage in the log, after everything before it.
	EndCorrupt
	// EndDeleted belongs to a stream that was deleted; the rest was delivered.
	EndDeleted
	// EndShutdown belongs to a shard that this broker serves no longer.
	EndShutdown
	// EndRemoved was ended by an operator.
	EndRemoved
	// EndSlow made no progress for the slow-consumer timeout.
	EndSlow
	// EndFailed met an error of the broker's own.
	EndFailed
)

func (r EndReason) String() string {
	return [...]string{"none", "cancelled", "lagged", "too_old", "corrupt", "deleted", "shutdown", "removed", "slow", "failed"}[min(r, EndFailed)]
}

// Status is the answer of Next.
type Status uint8

const (
	// Ready comes with a piece to write.
	Ready Status = iota
	// Idle has nothing to write until Changed.
	Idle
	// Ended is over: see Subscription.End.
	Ended
)

// Piece is what a reader writes next: whole frames, in one Write. Bytes are shared
// and valid until Next is called again.
type Piece struct {
	Bytes   []byte
	Next    uint64 // offset after it
	Records int

	size    int // in the source, which may have another shape
	entries int
}

// Subscription is a cursor: next is the first offset its client has not been sent.
// Next, Direct, Advance, Changed and End belong to one goroutine at a time, its feeder's
// or one that serves it meanwhile; the rest may be called from anywhere.
type Subscription struct {
	shard *Shard
	opts  SubscribeOptions
	queue Queue
	start uint64
	live  uint64
	since time.Time

	next      atomic.Uint64 // moves only after the bytes before it are out
	entries   atomic.Uint64 // with bytes: the cursor's position, once placed
	bytes     atomic.Uint64
	placed    atomic.Bool // its position is known: it was in the ring once
	armed     atomic.Bool // the lag bound counts
	overflow  atomic.Bool // a blocked sequencer gave it up
	delivered atomic.Uint64
	dropped   atomic.Uint64
	state     atomic.Uint32 // Waiting, Live or Behind
	handed    atomic.Int64  // when the piece under way was handed out, ns since the epoch; 0: none is

	stop     chan struct{}
	stopOnce sync.Once
	stopped  atomic.Uint32 // EndReason
	onStop   atomic.Pointer[func(EndReason)]

	// The feeder's own.
	cur    cursor // in the ring; c is nil while behind
	rest   []byte // of a page that was read from the log
	page   []byte // the buffer under rest
	log    Reader // where it reads on in the log
	conv   []byte // a frame in another form
	into   bool   // the next frame is entered in its middle
	skip   uint64 // hidden offsets passed and not yet reported
	idleAt uint64 // the mark when Next said Idle
	over   bool   // the bound was passed: limit is what is still owed
	limit  position
	end    End
}

// End is why and where a subscription ended; Next is the first offset that did not
// reach its stream.
type End struct {
	Reason EndReason
	Next   uint64
	Err    error
}

// ID is the process-wide id.
func (s *Subscription) ID() uint64 { return s.opts.ID }

// StartOffset is the first offset it delivers.
func (s *Subscription) StartOffset() uint64 { return s.start }

// LiveOffset is the readable end when it was registered: below it is history.
func (s *Subscription) LiveOffset() uint64 { return s.live }

// QueueEntries is the granted lag bound.
func (s *Subscription) QueueEntries() int { return s.queue.Entries }

// Lagged says that the client reads the lag notice.
func (s *Subscription) Lagged() bool { return s.opts.Lagged && s.opts.Offsets }

// Shard is what it reads.
func (s *Subscription) Shard() *Shard { return s.shard }

// Stopped is closed when Stop was called; Next tells what is left to do.
func (s *Subscription) Stopped() <-chan struct{} { return s.stop }

// Stop asks the feeder to end. With EndDeleted and EndShutdown it first delivers
// what is committed. The first reason wins.
func (s *Subscription) Stop(reason EndReason) {
	s.stopOnce.Do(func() {
		s.stopped.Store(uint32(reason))
		close(s.stop)
		if f := s.onStop.Load(); f != nil {
			(*f)(reason)
		}
	})
}

// OnStop is called once with the reason, from Stop, so that a reader that waits, or
// has a write under way, hears of it. It is set before the subscription has a feeder.
func (s *Subscription) OnStop(f func(EndReason)) { s.onStop.Store(&f) }

// Removed says whether an operator has ended it: what is left is not delivered.
func (s *Subscription) Removed() bool { return EndReason(s.stopped.Load()) == EndRemoved }

// Close unregisters. The feeder calls it last; it is safe to call twice.
func (s *Subscription) Close() {
	s.Stop(EndCancelled)
	s.shard.unregister(s)
	s.releasePage()
}

// doing is what the subscription is at, for people. A piece that was handed out a
// while ago and is not written yet is a reader that does not read.
func (s *Subscription) doing() State {
	if h := s.handed.Load(); h != 0 && s.shard.cfg.Now().UnixNano()-h > int64(blockedAfter) {
		return Blocked
	}
	return State(s.state.Load())
}

// place says where among the batches the cursor is.
func (s *Subscription) place(at position) {
	s.entries.Store(at.entries)
	s.bytes.Store(at.bytes)
	s.placed.Store(true)
}

func (s *Subscription) position() position { return position{s.entries.Load(), s.bytes.Load()} }

// Info describes the subscription.
func (s *Subscription) Info() SubscriptionInfo {
	mark := s.shard.mark.Load()
	next := s.next.Load()
	i := SubscriptionInfo{
		ID: s.opts.ID, Stream: s.shard.cfg.Name, Shard: s.shard.cfg.Shard, Conn: s.opts.Conn, Principal: s.opts.Principal,
		State: s.doing(), OnFull: s.queue.OnFull, Next: next, Live: s.live, Mark: mark,
		LagRecords: mark - min(next, mark), Delivered: s.delivered.Load(), Dropped: s.dropped.Load(), Since: s.since,
	}
	if s.placed.Load() {
		lag := s.shard.tail.position().minus(s.position())
		i.LagEntries, i.LagBytes = lag.entries, lag.bytes
	}
	return i
}

// Changed says whether Next may have something after it said Idle. Read after the
// feeder has made itself wakeable, it closes the gap between the two.
func (s *Subscription) Changed() bool {
	return s.shard.mark.Load() != s.idleAt || s.stopped.Load() != 0 || s.overflow.Load()
}

// Next gives the next piece of at most maxBytes, or one whole frame if that is
// larger. pageBytes bounds what is read from the log at once.
func (s *Subscription) Next(maxBytes, pageBytes int) (Piece, Status) {
	for {
		if st, over := s.checkEnd(); over {
			return Piece{}, st
		}
		if len(s.rest) > 0 {
			if p, ok := s.piece(s.rest, maxBytes); ok {
				s.hand(Behind)
				return p, Ready
			}
			continue
		}
		mark := s.shard.mark.Load() // before visible: what it covers is visible then
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
	if vis := int(c.visible.Load()); s.cur.at < vis {
		p, ok := s.piece(c.buf[s.cur.at:vis], maxBytes)
		if ok {
			s.hand(Live)
		}
		return p, Ready, ok
	}
	switch {
	case after != nil:
		s.cur = cursor{after, 0}
		s.pass(after.base)
	case c.evicted.Load():
		s.cur = cursor{}
	default:
		s.pass(mark) // what lies between is hidden
		return Piece{}, s.idle(mark), true
	}
	return Piece{}, 0, false
}

// hand notes that a piece is handed out.
func (s *Subscription) hand(st State) {
	s.state.Store(uint32(st))
	s.handed.Store(s.shard.cfg.Now().UnixNano())
}

// pass moves over hidden offsets up to to.
func (s *Subscription) pass(to uint64) {
	if n := s.next.Load(); to > n {
		s.skip += to - n
		s.next.Store(to)
	}
}

func (s *Subscription) idle(mark uint64) Status {
	if r := EndReason(s.stopped.Load()); r != 0 && s.shard.mark.Load() == mark {
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

// piece cuts whole frames off b, which starts at the cursor.
func (s *Subscription) piece(b []byte, maxBytes int) (Piece, bool) {
	first, err := wire.PeekOffsetFrame(b)
	if err != nil {
		s.ended(EndFailed, err)
		return Piece{}, false
	}
	next := s.next.Load()
	if first.Base > next {
		s.pass(first.Base)
	}
	if !s.owed(1, first.Size) {
		s.lose()
		return Piece{}, false
	}
	if s.into || (s.skip > 0 && s.opts.Skips && s.opts.Offsets) {
		return s.alone(b[:first.Size], first)
	}
	p := Piece{size: first.Size, entries: 1, Records: int(first.Count), Next: first.Base + uint64(first.Count)}
	for p.size < len(b) {
		f, err := wire.PeekOffsetFrame(b[p.size:])
		if err != nil || p.size+f.Size > maxBytes || f.Base != p.Next || !s.owed(p.entries+1, p.size+f.Size) {
			break
		}
		p.size += f.Size
		p.entries++
		p.Records += int(f.Count)
		p.Next += uint64(f.Count)
	}
	p.Bytes = b[:p.size]
	if !s.opts.Offsets {
		p.Bytes = s.plain(p.Bytes)
	}
	return p, true
}

// alone is a piece of one frame that cannot go out as it stands: it is entered in
// its middle, or it reports hidden offsets.
func (s *Subscription) alone(frame []byte, f wire.FrameInfo) (Piece, bool) {
	p := Piece{size: len(frame), entries: 1, Next: f.Base + uint64(f.Count), Records: int(f.Count)}
	out := frame
	if s.into {
		cut, err := wire.AppendFrom(nil, frame, s.next.Load())
		if err != nil {
			s.ended(EndFailed, err)
			return Piece{}, false
		}
		out, p.Records = cut, int(p.Next-s.next.Load())
	}
	switch {
	case !s.opts.Offsets:
		s.conv = wire.AppendAsPlain(s.conv[:0], out)
		out = s.conv
	case s.skip > 0 && s.opts.Skips:
		s.conv = wire.AppendWithSkip(s.conv[:0], out, s.skip)
		out = s.conv
	}
	p.Bytes = out
	return p, true
}

// plain converts frames for a client that reads no offsets.
func (s *Subscription) plain(frames []byte) []byte {
	s.conv = s.conv[:0]
	for len(frames) > 0 {
		f, err := wire.PeekOffsetFrame(frames)
		if err != nil {
			break
		}
		s.conv = wire.AppendAsPlain(s.conv, frames[:f.Size])
		frames = frames[f.Size:]
	}
	return s.conv
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
	s.checkLag()
	if s.queue.OnFull == Block {
		s.shard.blockers.signal()
	}
}
