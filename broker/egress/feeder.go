package egress

import (
	"context"
	"errors"
	"os"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

var errRemoved = errors.New("egress: the subscription was removed")

// feeder writes one subscription. Its fields belong to its goroutine while it has
// one, and to whoever has borrowed it otherwise.
type feeder struct {
	engine *Engine
	lane   *lane
	group  *group
	conn   *Conn
	sub    *stream.Subscription
	w      Writer
	end    func(stream.End)
	unhook func() bool // gives up the notice that w's context ends

	place    place              // guarded by group.mu
	waiting  context.CancelFunc // ends a wait for memory; guarded by group.mu
	granted  int                // memory for a large frame that it holds
	deadline time.Time          // the one that is set on w
}

// run is the feeder's goroutine, from when there is something to do until it parks or
// is over.
func (f *feeder) run() {
	if e, over := f.feed(); over {
		f.leave(f.finish(e))
	}
}

// feed writes what there is; over says that there will be no more.
func (f *feeder) feed() (e stream.End, over bool) {
	cfg := &f.engine.cfg
	for {
		if ctx := f.w.Context(); ctx.Err() != nil {
			return f.cut(stream.EndCancelled, context.Cause(ctx)), true
		}
		piece := f.lane.pieceBytes(cfg)
		p, status := f.sub.Next(piece, max(f.conn.pageBytes(piece), f.granted))
		switch status {
		case stream.Ended:
			return f.sub.End(), true
		case stream.Idle:
			f.giveLarge() // it was granted for what was lost
			if f.park() {
				return stream.End{}, false
			}
		case stream.Ready:
			if err := f.write(p.Bytes); err != nil {
				return f.explain(err), true
			}
			f.sub.Advance(p)
			f.engine.wrote(len(p.Bytes), p.Records)
			if !f.sub.HoldsLarge() {
				f.giveLarge()
			}
		case stream.Large:
			f.giveLarge() // nobody waits for some with some
			f.takeLarge(f.sub.Need())
		}
	}
}

// leave is the end of a feeder.
func (f *feeder) leave(e stream.End) {
	f.unhook()
	f.lane.leave(f.group, f.sub.Shard())
	f.sub.Close()
	f.giveLarge()
	f.conn.pages.subs.Add(-1)
	f.engine.pages.subs.Add(-1)
	f.end(e)
	f.engine.feeders.Done()
}

// write hands b over in steps that each have to make progress within the timeout.
func (f *feeder) write(b []byte) error {
	for len(b) > 0 {
		step := b[:min(len(b), stepBytes)]
		if err := f.extend(); err != nil {
			return err
		}
		if _, err := f.w.Write(step); err != nil {
			return err
		}
		b = b[len(step):]
	}
	return nil
}

// extend moves the write deadline, at most once in an eighth of the timeout: setting
// it costs as much as a small write.
func (f *feeder) extend() error {
	timeout := f.engine.cfg.SlowConsumerTimeout
	now := time.Now()
	if f.deadline.Sub(now) >= timeout {
		return nil
	}
	f.deadline = now.Add(timeout + timeout/8)
	if err := f.w.SetWriteDeadline(f.deadline); err != nil {
		return err
	}
	if f.sub.Removed() { // its interruption may have come just before
		return errRemoved
	}
	return nil
}

// explain turns a failed write into an end.
func (f *feeder) explain(err error) stream.End {
	switch {
	case f.sub.Removed():
		return f.cut(stream.EndRemoved, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return f.cut(stream.EndSlow, err)
	}
	return f.cut(stream.EndCancelled, err)
}

// cut is an end that the subscription did not come to itself.
func (f *feeder) cut(r stream.EndReason, err error) stream.End {
	return stream.End{Reason: r, Next: f.sub.Info().Next, Err: err}
}

// notify ends the stream with a notice.
func (f *feeder) notify(m wire.Message) {
	if err := f.write(wire.AppendMessage(nil, m)); err != nil {
		f.w.CancelWrite(ResetLost)
		return
	}
	_ = f.w.Close() // an error says that the client is gone, which it need not be told
}

// finish closes the stream in the way that tells its client what to do next.
func (f *feeder) finish(e stream.End) stream.End {
	switch e.Reason {
	case stream.EndLagged:
		f.notify(&wire.SubscriptionLagged{SubscriptionID: f.sub.ID(), ResumeFrom: e.Next})
	case stream.EndMoved:
		if e.Moved == nil || !f.sub.TellMoved() {
			f.w.CancelWrite(ResetLost)
			break
		}
		f.notify(&wire.ShardMoved{
			SubscriptionID: f.sub.ID(), ResumeFrom: &e.Next,
			NodeID: e.Moved.NodeID, Addr: e.Moved.Addr, Generation: e.Moved.Generation,
		})
	case stream.EndDeleted:
		_ = f.w.Close()
	case stream.EndCancelled:
		f.w.CancelWrite(0)
	default:
		f.w.CancelWrite(ResetLost)
	}
	return e
}
