package stream

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
	// EndMoved belongs to a shard that another broker serves from now on, in an orderly
	// way: what was committed was delivered, End.Moved says where to go.
	EndMoved
	// EndDeposed belongs to a shard that this broker found out to lead no longer.
	EndDeposed
)

func (r EndReason) String() string {
	return [...]string{"none", "cancelled", "lagged", "too_old", "corrupt", "deleted", "shutdown", "removed", "slow", "failed", "moved", "deposed"}[min(r, EndDeposed)]
}

// End is why and where a subscription ended; Next is the first offset that did not
// reach its stream.
type End struct {
	Reason EndReason
	Next   uint64
	Err    error
	Moved  *Moved // with EndMoved
}

// Moved says which broker serves a shard now; Generation grows with each change.
type Moved struct {
	NodeID, Addr string
	Generation   uint64
}

// Stop asks the feeder to end. With EndDeleted, EndShutdown and EndMoved it first delivers
// what is committed. The first reason wins.
func (s *Subscription) Stop(reason EndReason) {
	s.stopOnce.Do(func() {
		s.stopped.Store(uint32(reason))
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

// checkEnd says whether Next has nothing more to look for.
func (s *Subscription) checkEnd() (Status, bool) {
	if s.end.Reason != 0 {
		return Ended, true
	}
	switch r := EndReason(s.stopped.Load()); r {
	case 0, EndDeleted, EndShutdown, EndMoved: // what is committed is delivered first
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
		if r == EndMoved {
			s.end.Moved = s.moved.Load()
		}
		if s.queue.OnFull == Block { // its client is yet to be told, which publishers need not wait for
			s.shard.blockers.remove(s)
		}
	}
	return Ended
}

// End is why Next said Ended.
func (s *Subscription) End() End { return s.end }
