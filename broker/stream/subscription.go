package stream

import (
	"sync"
	"sync/atomic"
	"time"
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

	stopOnce sync.Once
	stopped  atomic.Uint32 // EndReason
	onStop   atomic.Pointer[func(EndReason)]
	until    atomic.Uint64 // what lies there or beyond is not delivered any more
	moved    atomic.Pointer[Moved]

	// The feeder's own.
	cur    cursor // in the ring; c is nil while behind
	rest   []byte // of a page that was read from the log
	page   []byte // the buffer under rest
	log    Reader // where it reads on in the log
	conv   []byte // a frame in another form
	own    int    // bytes that page and conv may take
	need   int    // bytes that they would have to take
	into   bool   // the next frame is entered in its middle
	skip   uint64 // hidden offsets passed and not yet reported
	idleAt uint64 // the mark when Next said Idle
	over   bool   // the bound was passed: limit is what is still owed
	limit  position
	end    End
}

// ID is the process-wide id.
func (s *Subscription) ID() uint64 { return s.opts.ID }

// StartOffset is the first offset it delivers.
func (s *Subscription) StartOffset() uint64 { return s.start }

// LiveOffset is the readable end when it was registered: below it is history.
func (s *Subscription) LiveOffset() uint64 { return s.live }

// Lagged says that the client reads the lag notice.
func (s *Subscription) Lagged() bool { return s.opts.Lagged && s.opts.Offsets }

// TellMoved says that the client reads the notice of a shard that has moved.
func (s *Subscription) TellMoved() bool { return s.opts.Moved }

// Shard is what it reads.
func (s *Subscription) Shard() *Shard { return s.shard }

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

// SubscriptionInfo is a reader at a glance.
type SubscriptionInfo struct {
	ID              uint64
	Stream          Name
	Shard           uint32
	Conn, Principal string
	State           State
	OnFull          OnFull
	Next            uint64 // first offset that its client was not sent
	Live, Mark      uint64
	// LagRecords counts offsets; LagEntries and LagBytes are what the queue bound is
	// held against, 0 until it has come to the ring: of history nobody counts them.
	LagRecords, LagEntries, LagBytes uint64
	Delivered, Dropped               uint64 // records
	Since                            time.Time
}
