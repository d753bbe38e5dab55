package stream

import (
	"context"
	"fmt"

	"felix.dev/felix/broker/wire"
)

// Close ends a shard: publishes are refused, what was accepted is finished as long
// as ctx lasts, and subscriptions are told: they deliver what is committed, then
// end with reason. When ctx is over, what was not yet given to the log is refused,
// and what was is answered when the log commits or is closed. Close waits for the
// shard's own goroutines, so for an append under way, not for readers.
func (s *Shard) Close(ctx context.Context, reason EndReason) error {
	var err error
	s.once.Do(func() {
		q := &s.queue
		stop := context.AfterFunc(ctx, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.idle.Broadcast()
		})
		defer stop()
		q.mu.Lock()
		q.closed = closedError(reason)
		close(s.closing)
		var late []*Publish
		for q.running || len(q.waiting) > 0 || (len(q.inflight) > 0 && ctx.Err() == nil) {
			switch {
			case ctx.Err() != nil && len(q.waiting) > 0:
				late = append(late, q.waiting...)
				q.waiting, q.bytes = nil, 0
			case len(q.waiting) > 0 && !q.running:
				q.running = true
				q.mu.Unlock()
				s.sequence(false)
				q.mu.Lock()
			default:
				q.idle.Wait()
			}
		}
		if len(q.inflight) > 0 {
			err = fmt.Errorf("stream: %s shard %d: closed with unconfirmed writes: %w", s.cfg.Name, s.cfg.Shard, context.Cause(ctx))
		}
		q.mu.Unlock()
		for _, p := range late {
			p.Done(Result{Err: closedError(reason)})
		}
		s.tasks.Wait() // nothing runs and nothing waits, so that nobody starts another
		s.endSubscriptions(reason)
	})
	return err
}

// CloseLog closes the shard's log once its readers are gone. The ring goes as well:
// publishers remember where they wrote to, for as long as they are connected. A reader
// that is left keeps it.
func (s *Shard) CloseLog() error {
	if s.Info().Subscriptions == 0 {
		s.forget()
	}
	if s.log == nil {
		return nil
	}
	return s.log.Close()
}

// forget gives the ring's memory back.
func (s *Shard) forget() {
	s.tail.clear()
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if !s.queue.running { // else the sequencer has it, which Close could not wait for
		s.staging.c = nil
	}
}

func closedError(reason EndReason) *Error {
	if reason == EndDeleted {
		return &Error{Code: wire.CodeNotFound, Retry: wire.RetryAfter, RetryAfter: diskRetry, Message: "the stream was deleted", Err: ErrClosed}
	}
	if reason == EndMoved || reason == EndDeposed {
		return &Error{Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: ReasonMoving, Message: "another broker serves the shard", Err: ErrNotLeader}
	}
	return &Error{Code: wire.CodeDraining, Retry: wire.RetryNow, Message: "the broker is shutting down", Err: ErrClosed}
}
