package route

import (
	"fmt"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// answer settles one entry. One that was given up meanwhile is known no more.
func (l *link) answer(a *wire.Ack) error {
	l.mu.Lock()
	e := l.sent[a.RequestID]
	switch {
	case a.RequestID > l.started:
		l.mu.Unlock()
		return fmt.Errorf("%w: answer of %s to publish %d, which it did not get", errFrame, l.node, a.RequestID)
	case e == nil:
		l.mu.Unlock()
		return nil
	}
	r, place := resultOf(a, e.owner), e.place
	early := a.RequestID > l.written // the writer still has its records
	var blocked []*Place
	if early {
		e.early, e.hasEarly, e.hint = r, true, hintOf(a)
	} else {
		blocked = l.forget(e)
	}
	l.mu.Unlock()
	if early {
		return nil
	}
	place.hinted(hintOf(a))
	place.answered(e, r, true)
	for _, p := range blocked {
		p.pump()
	}
	return nil
}

// forget takes e out of what is on its way, and gives the places that may go on now. The
// caller holds mu.
func (l *link) forget(e *entry) []*Place {
	delete(l.sent, e.id)
	l.bytes -= e.size()
	if l.closing && len(l.sent)+len(l.out) == 0 {
		l.stop()
	}
	blocked := l.blocked
	l.blocked = nil
	return blocked
}

// wrote notes that the records of a batch are needed no more, and answers those of it
// whose answers came before that. The rest may be answered, and gone, at any time after.
func (l *link) wrote(batch []*entry) {
	var early []*entry
	var blocked []*Place
	l.mu.Lock()
	for _, e := range batch {
		l.written = e.id
		if e.hasEarly {
			early = append(early, e)
			blocked = append(blocked, l.forget(e)...)
		}
	}
	l.mu.Unlock()
	for _, e := range early {
		e.place.hinted(e.hint)
		e.place.answered(e, e.early, true)
	}
	for _, p := range blocked {
		p.pump()
	}
}

// expire gives up what should have been answered by now.
func (l *link) expire(now time.Time) {
	l.mu.Lock()
	if l.due.IsZero() || now.Before(l.due) {
		l.mu.Unlock()
		return
	}
	l.due = time.Time{}
	var late []*entry
	for id, e := range l.sent {
		switch {
		case now.Before(e.deadline) || id > l.written: // the writer has a deadline of its own
			if l.due.IsZero() || e.deadline.Before(l.due) {
				l.due = e.deadline
			}
		default:
			late = append(late, e)
		}
	}
	var blocked []*Place
	for _, e := range late {
		blocked = append(blocked, l.forget(e)...)
	}
	var unsent []*entry
	keep := l.out[:0]
	for _, e := range l.out {
		if now.Before(e.deadline) {
			keep = append(keep, e)
			continue
		}
		unsent = append(unsent, e)
		l.bytes -= e.size()
	}
	clear(l.out[len(keep):])
	l.out = keep
	l.mu.Unlock()
	for _, e := range late {
		e.place.gaveUp(e, unknown("the shard's broker did not say in time whether it has written it"))
	}
	for _, e := range unsent {
		e.place.gaveUp(e, e.expired(stream.ReasonOwnerUnavailable))
	}
	for _, p := range blocked {
		p.pump()
	}
}
