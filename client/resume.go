package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/wire"
)

// loss is the time between two event streams of a subscription.
type loss struct {
	// cause is why the last one ended.
	cause error
	// last is why the last attempt to resume failed, nil if there was none.
	last error
	// orderly says that the broker itself sent the subscription away: it is there, so the first attempt is made at once.
	orderly bool
	lagged  *LaggedError
	// addr is the broker to ask first, "" for any.
	addr  string
	since time.Time
	// spent is what the calls so far have waited for a new one.
	spent time.Duration
}

// notFoundPatience is how long a stream may be unknown before the subscription believes it: a broker that has just
// started may not know all yet.
const notFoundPatience = 5 * time.Second

// ended takes the last frame of an event stream.
func (s *Subscription) ended(end *ending) {
	l := &loss{orderly: true, addr: end.addr}
	if end.lagged {
		l.lagged = &LaggedError{ResumeFrom: end.resumeFrom}
		l.cause = l.lagged
	} else {
		l.cause = errors.New("the shard is served by another broker now")
	}
	s.lost(l)
}

// lost leaves an event stream that has ended.
func (s *Subscription) lost(l *loss) {
	l.since = time.Now()
	s.mu.Lock()
	a := s.attached
	s.attached = nil
	s.mu.Unlock()
	if a != nil {
		a.leave()
	}
	s.in, s.loss = nil, l
	s.dec.rest, s.dec.left = nil, 0
	switch {
	case l.lagged != nil && s.cfg.OnLagged != nil:
		s.cfg.OnLagged(l.lagged.ResumeFrom, s.Position())
	case l.lagged == nil && s.cfg.OnLost != nil:
		s.cfg.OnLost(l.cause)
	}
}

// resume gets a new event stream that goes on at the position. What it returns ends the call; unless it is the
// context's, it is final.
func (s *Subscription) resume(ctx context.Context) error {
	switch {
	case s.cfg.NoReconnect && s.loss.lagged != nil:
		return s.finish(s.loss.lagged)
	case s.cfg.NoReconnect || !s.dec.known:
		return s.finish(s.lostError())
	}
	began := time.Now()
	earlier := s.loss.spent
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(s.cfg.ResumeTimeout-earlier), errResumeTimeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.shut, func() { stop(ErrClosed) })()
	for {
		err := s.tryResume(ctx)
		s.loss.spent = earlier + time.Since(began)
		switch {
		case err == nil:
			s.resumed()
			return nil
		case s.isShut():
			return ErrClosed
		case errors.Is(context.Cause(ctx), errResumeTimeout):
			return s.finish(s.lostError())
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !s.worthwhile(err):
			if isA[*CursorError](err) {
				return s.finish(err)
			}
			return s.finish(s.lostError())
		}
		s.client.log.Debug("resuming a subscription failed and is tried again", "stream", s.target.stream.String(),
			"shard", s.target.shard, "position", s.Position(), "attempts", s.retry.attempts, "error", err)
	}
}

// errResumeTimeout is the cause of the end of a context.
var errResumeTimeout = errors.New("felix: no event stream within the resume timeout")

// tryResume waits as long as it should and then subscribes once.
func (s *Subscription) tryResume(ctx context.Context) error {
	if s.retry.attempts > 0 || !s.loss.orderly {
		if err := s.retry.wait(ctx, askedWait(s.loss.last)); err != nil {
			return err
		}
	}
	s.retry.attempts++
	addr := s.loss.addr
	s.loss.addr = "" // it is asked first, not for ever
	a, asked, err := s.client.attach(ctx, s.target, At(s.Position()), addr)
	if cursor, ok := errors.AsType[*CursorError](err); ok && s.cfg.SkipLost && cursor.Reason == wire.CursorTooOld {
		a, asked, err = s.client.attach(ctx, s.target, Earliest(), asked)
	}
	if err != nil {
		s.loss.last, s.loss.addr = err, s.client.instead(asked, err)
		return err
	}
	if !a.hasOffsets {
		a.leave()
		s.loss.last = &ProtocolError{Where: whereControl, Err: errors.New("the stream has lost its offsets")}
		return s.loss.last
	}
	s.mu.Lock()
	open := !s.isShut()
	if open {
		s.attached = a
	}
	s.mu.Unlock()
	if !open {
		a.leave()
		return ErrClosed
	}
	s.in, s.dec.id = a, a.id
	return nil
}

// instead is the broker to ask after one has failed, "" for any.
func (c *Client) instead(asked string, err error) string {
	if asked == "" || !movesOver(err) && !isA[*ConnectError](err) {
		return ""
	}
	return c.pool.elsewhere(asked)
}

// worthwhile says whether a failed attempt is followed by another one.
func (s *Subscription) worthwhile(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok && e.Code == wire.CodeNotFound && s.loss.spent > notFoundPatience {
		return false
	}
	return retryable(err)
}

// resumed closes the loss.
func (s *Subscription) resumed() {
	l := s.loss
	s.loss = nil
	if s.cfg.OnResumed != nil {
		s.cfg.OnResumed(Resumed{Position: s.Position(), Down: time.Since(l.since), Attempts: s.retry.attempts, Broker: s.in.conn.addr})
	}
}

// lostError is the end of a subscription that does not come back.
func (s *Subscription) lostError() error {
	err := s.loss.cause
	if s.loss.last != nil {
		err = fmt.Errorf("%w; resuming: %w", err, s.loss.last)
	}
	return &LostError{Position: s.Position(), Resumable: s.dec.known, Err: err}
}
