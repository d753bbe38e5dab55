package client

import (
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/wire"
)

// arm makes sure that batches are looked at before the first one is overdue. The lock is held.
func (p *Publisher) arm() {
	if !p.armed {
		p.armIn(p.client.cfg.PublishTimeout)
	}
}

func (p *Publisher) armIn(d time.Duration) {
	p.armed = true
	if p.expiry == nil {
		p.expiry = time.AfterFunc(d, p.expire)
	} else {
		p.expiry.Reset(d)
	}
}

// expire settles what is overdue.
func (p *Publisher) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if p.life.Err() != nil {
		return
	}
	timeout := p.client.cfg.PublishTimeout
	now := time.Now()
	oldest := now
	left := false
	for _, l := range p.lanes {
		l.expire(now.Add(-timeout))
		for _, b := range l.queue {
			if b != nil {
				left = true
				if b.created.Before(oldest) {
					oldest = b.created
				}
			}
		}
	}
	if left {
		p.armIn(max(timeout-now.Sub(oldest), time.Millisecond))
	}
}

// expire settles the batches of a lane that were made before since. The lock is held.
func (l *lane) expire(since time.Time) {
	p := l.p
	err := fmt.Errorf("no answer within %v", p.client.cfg.PublishTimeout)
	if !l.writing.IsZero() && l.writing.Before(since) {
		// The broker has not read for as long: a new stream may be better off.
		l.stream.fail(err)
	}
	for _, b := range l.unfinished(len(l.queue)) {
		if b.created.After(since) || l.queueIndex(b) < 0 {
			continue
		}
		switch {
		case b.sent == 0:
			l.finish(b, &Error{Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Message: "the records could not be sent", Err: errors.Join(err, l.trouble)})
		case p.cfg.Idempotent:
			// It may be stored or not, and so may those behind it. Nothing can follow it under this producer.
			if e := l.newEpoch(unknownOutcome(err)); l.stream != nil {
				l.stream.fail(e)
			}
		default:
			if l.queueIndex(b) < l.next {
				l.late++
			}
			l.finish(b, unknownOutcome(err))
		}
	}
}

// queueIndex is where a batch is in the queue, -1 if it is finished. The lock is held.
func (l *lane) queueIndex(b *batch) int {
	if b.id < l.base || b.id-l.base >= uint64(len(l.queue)) || l.queue[b.id-l.base] != b {
		return -1
	}
	return int(b.id - l.base)
}
