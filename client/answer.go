package client

import (
	"errors"
	"fmt"
	"io"
	"time"

	"felix.dev/felix/broker/wire"
)

// answer is what a broker says about a batch.
type answer struct {
	id        uint64
	offset    uint64
	hasOffset bool
	// One of these if it failed.
	failed  *Error
	refused *wire.PublishRefused
}

// readAnswer reads one frame of a publish stream. An error means that the stream cannot be trusted any more.
func readAnswer(h wire.Header, payload []byte) (answer, error) {
	if h.Flags != 0 {
		a, err := wire.DecodeAck(h.Flags, payload)
		switch {
		case err != nil:
			return answer{}, &ProtocolError{Where: wherePublish, Err: err}
		case !a.OK:
			return answer{id: a.RequestID, failed: errorOfAck(&a)}, nil
		}
		return answer{id: a.RequestID, offset: a.Offset, hasOffset: a.HasOffset}, nil
	}
	m, err := wire.DecodeMessage(payload)
	if err != nil {
		return answer{}, &ProtocolError{Where: wherePublish, Err: err}
	}
	switch m := m.(type) {
	case *wire.PublishOK:
		return answer{id: m.RequestID, offset: deref(m.Offset), hasOffset: m.Offset != nil}, nil
	case *wire.PublishError:
		return answer{id: m.RequestID, failed: errorOf(m.Message, m.Code, m.Retry, m.Detail)}, nil
	case *wire.PublishRefused:
		return answer{id: m.RequestID, refused: m}, nil
	case *wire.ErrorMsg:
		// The broker ends the stream and says why.
		return answer{}, errorOf(m.Message, m.Code, m.Retry, m.Detail)
	}
	return answer{}, &ProtocolError{Where: wherePublish, Err: fmt.Errorf("message %q", m.MessageType())}
}

// settle takes an answer. Answers come in any order. An error means that the stream must be given up; it does not fail
// publishes by itself. The lock is held.
func (l *lane) settle(a answer) error {
	b := l.find(a.id)
	if b == nil {
		if l.late > 0 { // for a batch that was given up
			l.late--
			return nil
		}
		return &ProtocolError{Where: wherePublish, Err: fmt.Errorf("an answer for request %d, which is not outstanding", a.id)}
	}
	if a.failed == nil && a.refused == nil {
		l.failures, l.hops = 0, 0
		b.offset, b.hasOffset = a.offset, a.hasOffset
		l.finish(b, nil)
		switch {
		case l.draining:
			return l.drained()
		case l.p.cfg.Idempotent:
			l.rouse() // there is room for one more
		}
		return nil
	}
	switch {
	case l.p.cfg.Idempotent:
		return l.settleIdempotent(b, a)
	case a.refused != nil:
		return &ProtocolError{Where: wherePublish, Err: fmt.Errorf("request %d, which has no sequence, was refused for its sequence", a.id)}
	case l.p.cfg.AtLeastOnce && a.failed.Retry != wire.RetryFatal:
		l.leave(a.failed)
		return l.again(b, a.failed)
	}
	l.leave(a.failed)
	// One that failed is no reason to fail any other.
	l.finish(b, a.failed)
	return nil
}

// leave sends nothing more on this stream if another broker may do better. The lock is held.
func (l *lane) leave(failed *Error) {
	if movesOver(failed) && !l.p.client.pool.alone(l.stream.addr) {
		l.leaving = failed
		l.rouse()
	}
}

// again sends a batch again, at the end of the queue and after a wait, without disturbing what is on its way. The
// lock is held.
func (l *lane) again(b *batch, failed *Error) error {
	l.requeue(b)
	l.hold = laterOf(l.hold, time.Now().Add(max(failed.RetryAfter, firstRetry)))
	l.rouse()
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// readAnswers is the reader's loop. It returns why the stream is over.
func (l *lane) readAnswers(st *laneStream) error {
	for {
		if err := l.settleRead(st); err != nil {
			return err
		}
		err := st.frames.fill()
		if err == nil {
			continue
		}
		switch {
		case st.finishing.Load():
			return ErrClosed
		case errors.Is(err, io.EOF):
			err = errNoAnswer
		}
		return fmt.Errorf("publish stream from broker %s: %w", st.addr, err)
	}
}

// settleRead takes all answers that are in the buffer under one lock.
func (l *lane) settleRead(st *laneStream) error {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	for {
		h, payload, ok, err := st.frames.peek()
		if err != nil {
			return &ProtocolError{Where: wherePublish, Err: err}
		}
		if !ok {
			return nil
		}
		a, err := readAnswer(h, payload)
		if err != nil {
			return err
		}
		st.frames.consume(h)
		if err := l.settle(a); err != nil {
			return err
		}
	}
}
