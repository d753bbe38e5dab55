package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Subscription reads one shard of a stream in order. Next and NextBatch are for one goroutine at a time and refuse to
// be called by two; the other methods may be called at any time.
//
// Nothing is read ahead of the application beyond one buffer and the receive window: a reader that stops holds up
// its own event stream and nothing else.
type Subscription struct {
	client *Client
	target target
	cfg    SubscribeConfig
	start  uint64
	live   uint64
	offs   bool // the stream has offsets

	// shut is the subscription's own lifetime: it ends with Close. It is no caller's context.
	shut     context.Context
	shutDown context.CancelFunc
	position atomic.Uint64
	busy     atomic.Bool // a Next or NextBatch is running

	mu sync.Mutex
	// attached is the event stream to interrupt or to leave, nil while there is none. Guarded by mu.
	attached *attachment
	// watch is the interruption by the context that is waited with at present. Guarded by mu.
	watch watch

	// What follows belongs to the goroutine that calls Next or NextBatch.

	in     *attachment // as attached, nil between event streams
	dec    decoder
	events []Event // decoded and not returned, from cursor on
	cursor int
	retry  *retry
	loss   *loss // why there is no event stream, nil while there is one
	final  error // returned for ever
}

// maxBatchEvents bounds what NextBatch returns at once, and with it the memory of the slice.
const maxBatchEvents = 1024

// Next returns the next event. The payload is a copy and the caller's to keep. It returns io.EOF when the broker has
// ended the subscription for good, for example because the stream was deleted; an error of the context leaves the
// subscription as it is; every other error is final.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return Event{}, errBusy
	}
	defer s.busy.Store(false)
	if err := s.ready(ctx); err != nil {
		return Event{}, err
	}
	e := s.events[s.cursor]
	s.cursor++
	e.Payload = append(make([]byte, 0, len(e.Payload)), e.Payload...)
	s.returned(&e)
	return e, nil
}

// NextBatch returns the events that are there, at least one and at most 1024, without copying them: the slice and the
// payloads are valid until the next call of Next or NextBatch. Errors are as for Next. This is the fast path: it
// allocates nothing per event.
func (s *Subscription) NextBatch(ctx context.Context) ([]Event, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return nil, errBusy
	}
	defer s.busy.Store(false)
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	batch := s.events[s.cursor:]
	s.cursor = len(s.events)
	s.returned(&batch[len(batch)-1])
	return batch, nil
}

var errBusy = errors.New("felix: Next or NextBatch is already running in another goroutine")

// returned moves the position behind the last event handed out.
func (s *Subscription) returned(last *Event) {
	if last.HasOffset {
		s.position.Store(last.Offset + 1)
	}
}

// ready makes sure that there is an event to return.
func (s *Subscription) ready(ctx context.Context) error {
	if s.cursor < len(s.events) {
		return s.check(ctx)
	}
	s.events, s.cursor = s.events[:0], 0
	for {
		if err := s.check(ctx); err != nil {
			return err
		}
		if s.in == nil {
			if err := s.resume(ctx); err != nil {
				return err
			}
		}
		var end *ending
		var err error
		s.events, end, err = s.dec.decode(s.events, s.in.frames, maxBatchEvents, s.gap)
		switch {
		case len(s.events) > 0:
			// An error stands in the buffer still and comes up in the next call.
			s.retry.reset()
			return nil
		case err != nil:
			return s.finish(err)
		case end != nil:
			s.ended(end)
		default:
			if err := s.fill(ctx); err != nil {
				return err
			}
		}
	}
}

// check is what ends a call before anything is read.
func (s *Subscription) check(ctx context.Context) error {
	if s.isShut() {
		return ErrClosed
	}
	if s.final != nil {
		return s.final
	}
	return ctx.Err()
}

// fill reads from the event stream. It returns an error only if the call is over.
func (s *Subscription) fill(ctx context.Context) error {
	s.watchFor(ctx)
	err := s.in.frames.fill()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		// Only a context sets the deadline: this one's, or an earlier one's at the last moment.
		s.in.frames.forgetTimeout()
		return nil
	case s.isShut():
		return ErrClosed
	case err == io.EOF: //nolint:errorlint // a wrapped EOF is not the clean end
		return s.finish(io.EOF)
	}
	s.lost(&loss{cause: fmt.Errorf("event stream from broker %s: %w", s.in.conn.addr, err)})
	return nil
}

func (s *Subscription) isShut() bool { return s.shut.Err() != nil }

// gap reports lost offsets.
func (s *Subscription) gap(from, to uint64) {
	if s.cfg.OnGap != nil {
		s.cfg.OnGap(from, to)
	}
}

// finish ends the subscription from within, for ever.
func (s *Subscription) finish(err error) error {
	s.final = err
	s.end()
	return err
}

// Position is the first offset that was not returned yet: where to subscribe again to go on. It means nothing if the
// stream has no offsets.
func (s *Subscription) Position() uint64 { return s.position.Load() }

// StartOffset is the first offset that the broker promised to deliver when the subscription began.
func (s *Subscription) StartOffset() uint64 { return s.start }

// LiveOffset is the readable end when the subscription began: what is below it is history.
func (s *Subscription) LiveOffset() uint64 { return s.live }

// HasOffsets is false for a stream without a log; the subscription then has no position and cannot be resumed.
func (s *Subscription) HasOffsets() bool { return s.offs }

// Close ends the subscription, which tells the broker at once. It may be called while another goroutine waits in
// Next, which then returns ErrClosed, and more than once.
func (s *Subscription) Close() error {
	s.shutDown()
	s.end()
	return nil
}

// end gives up what the subscription holds. Next may still be reading: it is woken up.
func (s *Subscription) end() {
	s.mu.Lock()
	a := s.attached
	s.attached = nil
	s.watch.stop()
	s.mu.Unlock()
	if a != nil {
		a.leave()
	}
	s.client.forget(s)
}
