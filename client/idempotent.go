package client

import (
	"context"
	"errors"
	"math"

	"felix.dev/felix/broker/wire"
)

// An idempotent lane numbers its batches, and a number never stands for other bytes: that is what all decisions here
// keep. After any trouble the stream is given up and everything without an answer is sent again, in order and under
// the same numbers, on a new one; what the broker has stored already is only answered again.
//
// A number that can never be filled (its batch has failed for good) would block all that follow. The lane then takes a
// new producer id, under which counting begins at 0; what was sent under the old one can no longer be stored, as
// the missing number is in front of it.

// redirect gives a stream up for one to another broker.
type redirect struct{ addr string }

func (e *redirect) Error() string { return "the shard is led by broker " + e.addr }

// restart gives a stream up to send again after a wait.
type restart struct{ cause error }

func (e *restart) Error() string { return "sending again: " + e.cause.Error() }
func (e *restart) Unwrap() error { return e.cause }

// initProducer gets a producer id on a new stream.
func (l *lane) initProducer(ctx context.Context, cn *conn, st *control) error {
	ctx, cancel := cn.requestContext(ctx)
	defer cancel()
	stop := st.interruptWith(ctx)
	id, err := st.askProducer()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return cn.requestError(ctx, err)
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.producer, l.hasProducer, l.nextSequence = id, true, 0
	return nil
}

// askProducer uses a request id that no batch will have.
func (st *control) askProducer() (uint64, error) {
	if _, err := st.s.Write(wire.AppendMessage(nil, &wire.ProducerInit{RequestID: math.MaxInt64})); err != nil {
		return 0, err
	}
	m, err := readMessage(st.frames)
	if err != nil {
		return 0, err
	}
	switch m := m.(type) {
	case *wire.ProducerInitOK:
		return m.ProducerID, nil
	case *wire.ErrorMsg:
		return 0, errorOf(m.Message, m.Code, m.Retry, m.Detail)
	case *wire.PublishError:
		return 0, errorOf(m.Message, m.Code, m.Retry, m.Detail)
	case *wire.Unsupported:
		return 0, &UnsupportedError{What: m.RequestType}
	}
	return 0, unexpected("producer_init", m)
}

// settleIdempotent takes an answer that is not a success. The lock is held.
func (l *lane) settleIdempotent(b *batch, a answer) error {
	switch {
	case a.refused != nil:
		return l.settleRefused(b, a.refused)
	case a.failed.Retry == wire.RetryFatal && b.sent > 1:
		// An earlier sending may have been stored, and then so may those behind it.
		return l.newEpoch(unknownOutcome(a.failed))
	case a.failed.Retry == wire.RetryFatal:
		// Neither it nor those behind it can be stored any more. They get answers of their own before they are
		// numbered anew: what is fatal for one is likely to be fatal for all.
		if !l.draining || b.sequence < l.broken {
			l.broken = b.sequence
		}
		l.draining = true
		l.finish(b, a.failed)
		return l.drained()
	case l.draining && (a.failed.Retry == wire.RetryOutcomeUnknown || b.sent > 1):
		return l.newEpoch(unknownOutcome(a.failed))
	case l.draining:
		b.held = true
		return l.drained()
	}
	// Not stored, or not known: the number tells the broker which, when it comes again.
	l.pause = max(l.pause, a.failed.RetryAfter)
	return &restart{a.failed}
}

// settleRefused takes a refusal of a number. The lock is held.
func (l *lane) settleRefused(b *batch, m *wire.PublishRefused) error {
	refused := &RefusedError{Reason: string(m.Reason.Kind), Expected: m.Reason.Expected, Message: m.Message}
	switch m.Reason.Kind {
	case wire.RefusedNotLeader:
		if m.Reason.Addr == "" || l.hops >= maxHops {
			l.addr, l.hops = "", 0
			return &restart{refused}
		}
		l.hops++
		l.addr = m.Reason.Addr
		return &redirect{m.Reason.Addr}
	case wire.RefusedGap:
		if l.draining {
			b.held = true
			return l.drained()
		}
		// The broker waits for one that is still here: it was refused or lost, and comes again first.
		if front := l.queue[0]; front.numbered && front.sequence <= m.Reason.Expected && m.Reason.Expected < b.sequence {
			return &restart{refused}
		}
	case wire.RefusedUnknown:
		if l.sentOnce() {
			// The broker has forgotten the producer, but nothing that is outstanding could have been stored before.
			l.renumber()
			return &restart{refused}
		}
	case wire.RefusedExpired, wire.RefusedReused:
	}
	// What the broker has stored of this lane cannot be found out any more.
	return l.newEpoch(refused)
}

// sentOnce says that everything without an answer was sent on this stream only. The lock is held.
func (l *lane) sentOnce() bool {
	for _, b := range l.unfinished(l.next) {
		if b.sent > 1 {
			return false
		}
	}
	return true
}

// drained goes on under a new producer id when everything that was sent under the old one is answered. The lock is
// held.
func (l *lane) drained() error {
	for _, b := range l.unfinished(l.next) {
		if !b.held {
			return nil
		}
	}
	l.renumber()
	return &restart{errNewProducer}
}

var errNewProducer = errors.New("a batch has failed for good, which takes a new producer id")

// drainedByLoss goes on under a new producer id after the stream was lost in the middle of draining. What was in front
// of the broken number may have been stored, what was behind it cannot. The lock is held.
func (l *lane) drainedByLoss(cause error) {
	for _, b := range l.unfinished(l.next) {
		if !b.held && b.sequence < l.broken {
			l.finish(b, unknownOutcome(cause))
		}
	}
	l.renumber()
}

// newEpoch fails everything that was sent, as it may be stored or not, and takes a new producer id. The lock is held.
func (l *lane) newEpoch(err error) error {
	for _, b := range l.unfinished(len(l.queue)) {
		if b.sent > 0 {
			l.finish(b, err)
		}
	}
	l.renumber()
	return &restart{err}
}

// renumber takes a new producer id for everything that is left: with the next stream, so this one must be given up.
// The lock is held.
func (l *lane) renumber() {
	l.hasProducer, l.draining = false, false
	for _, b := range l.queue {
		if b != nil {
			b.numbered, b.held, b.sent = false, false, 0
		}
	}
}
