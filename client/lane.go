package client

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/wire"
)

const (
	// maxWrite is how much goes into one Write: enough that its cost does not show.
	maxWrite = 256 << 10
	// maxIdempotent bounds the batches of an idempotent lane that are sent and not answered. The broker recognises
	// the last 64 batches of a producer, so every one of these would be.
	maxIdempotent = 32
	// maxFree bounds the buffers that a publisher keeps, and keepRecords their size.
	maxFree     = 32
	keepRecords = 256 << 10
)

// lane is a queue of batches and the one QUIC stream that they go out on. Its state has no goroutine of its own and
// is guarded by the publisher's lock, which all methods in this file need.
type lane struct {
	p *Publisher
	// shard is the one shard of an idempotent lane; otherwise the lane serves all.
	shard uint32

	// queue holds the batches that are not finished, in their order: queue[i] has the id base+i, nil if it finished
	// before those in front of it. queue[:next] was sent on the present stream.
	queue []*batch
	base  uint64
	next  int
	// open holds, by shard, the batch that records may still be added to; it is in the queue at or behind next.
	open []*batch

	// parked says that the writer sleeps; wake (cap 1) wakes it up.
	parked bool
	wake   chan struct{}
	// stream is what the lane writes to, nil while there is none.
	stream *laneStream
	// writing is when the present Write began, zero if there is none.
	writing time.Time
	// inflight counts batches of this stream without an answer.
	inflight int
	// late counts answers that may still come for batches that were given up.
	late int

	// The producer of an idempotent lane: sequences count from 0 for each producer id.
	producer     uint64
	hasProducer  bool
	nextSequence uint64

	// draining says that the number broken can never be filled: nothing is sent any more until all that was sent under
	// this producer id is answered.
	draining bool
	broken   uint64

	// failures counts what went wrong since the last answer, trouble is the last of it, and pause the wait that a
	// broker has asked for.
	failures int
	trouble  error
	pause    time.Duration
	// hold keeps everything back until then: a batch that a broker has refused for now is to be sent again.
	hold time.Time
	// leaving says why nothing more is sent on this stream: the broker cannot serve for now, and another one is asked as
	// soon as all that was sent is answered.
	leaving error
	// addr is the broker to use, "" for any; hops counts the redirects since the last answer.
	addr string
	hops int
}

func newLane(p *Publisher, shard uint32) *lane {
	return &lane{p: p, shard: shard, base: 1, wake: make(chan struct{}, 1)}
}

// add appends a record, for which room was taken, to the batch that it belongs to.
func (l *lane) add(m *Message) *Pending {
	slot, keyed := l.slot(m)
	b := l.open[slot]
	if b != nil && !l.accepts(b, m, keyed) {
		b.full = true
		b = nil
	}
	fresh := b == nil
	if fresh {
		b = &batch{
			id: l.base + uint64(len(l.queue)), records: l.p.buffer(), created: time.Now(), done: make(chan struct{}),
		}
		if m.keyed() {
			l.p.refreshRouting(b.created)
		}
		if keyed {
			b.key, b.keyed = bytes.Clone(m.Key), true
		}
		l.queue = append(l.queue, b)
		l.open[slot] = b
		l.p.arm()
	}
	b.records = wire.AppendRecord(b.records, m.Payload)
	b.size = len(b.records)
	b.count++
	if int(b.count) >= l.p.cfg.MaxBatchRecords || len(b.records) >= l.p.cfg.MaxBatchBytes {
		b.full = true
		l.open[slot] = nil
	}
	if fresh || b.full {
		l.rouse()
	}
	return b.pending()
}

// slot is the index in open for a message, and says whether its batch goes out with a key.
func (l *lane) slot(m *Message) (slot int, keyed bool) {
	if m.keyed() {
		r := l.p.routing
		keyed = !r.known || r.Count > 1
		if r.known {
			slot = int(r.shard(m))
		}
	}
	if l.p.cfg.Idempotent {
		slot = 0 // a lane of its own
	}
	for len(l.open) <= slot {
		l.open = append(l.open, nil)
	}
	return slot, keyed
}

// accepts says whether a batch of the right slot can take one more record.
func (l *lane) accepts(b *batch, m *Message, keyed bool) bool {
	if len(b.records)+recordSize(m) > l.p.cfg.MaxBatchBytes {
		return false
	}
	if r := l.p.routing; r != nil && !r.known {
		return b.keyed == keyed && bytes.Equal(b.key, m.Key)
	}
	return true
}

// rouse wakes the writer if it sleeps.
func (l *lane) rouse() {
	if l.parked {
		l.parked = false
		select {
		case l.wake <- struct{}{}:
		default: // one is under way
		}
	}
}

// wait is how long the batch at next lingers: 0 if it is due, and -1 if there is nothing to send.
func (l *lane) wait(now time.Time) time.Duration {
	for l.next < len(l.queue) && l.queue[l.next] == nil {
		l.next++
	}
	p := l.p
	switch {
	case l.next == len(l.queue) || l.leaving != nil:
		return -1
	case p.cfg.Idempotent && (l.inflight >= maxIdempotent || l.draining || !l.hasProducer):
		return -1
	case l.hold.After(now):
		return l.hold.Sub(now)
	case p.cfg.Linger == 0 || p.flushing > 0 || len(p.budget.waiting) > 0:
		return 0
	}
	for _, b := range l.queue[l.next:] {
		if b != nil && b.full {
			return 0
		}
	}
	return max(0, p.cfg.Linger-now.Sub(l.queue[l.next].created))
}

// take encodes batches that are due behind out and counts them as sent. The caller writes them at once.
func (l *lane) take(out []byte, now time.Time) []byte {
	p := l.p
	for l.wait(now) == 0 {
		b := l.queue[l.next]
		if len(out) > 0 && len(out)+len(b.records) > maxWrite {
			break
		}
		l.detach(b)
		if p.cfg.Idempotent && !b.numbered {
			b.numbered, b.sequence = true, l.nextSequence
			l.nextSequence++
		}
		out = wire.AppendPublish(out, &wire.Publish{
			Acked: !p.cfg.Unacked, RequestID: b.id, AckMode: wire.AckPerBatch,
			Idempotent: p.cfg.Idempotent, ProducerID: l.producer, Sequence: b.sequence,
			Keyed: b.keyed, Key: b.key,
			Tenant: p.tenant, Namespace: p.namespace, Stream: p.name,
			Records: wire.Records{Count: b.count, Bytes: b.records},
		})
		b.sent++
		l.next++
		l.inflight++
		if !p.cfg.resends() {
			p.recycle(b)
		}
	}
	return out
}

// detach ends the adding to a batch.
func (l *lane) detach(b *batch) {
	b.full = true
	for i, o := range l.open {
		if o == b {
			l.open[i] = nil
		}
	}
}

// find returns the batch that an answer is for.
func (l *lane) find(id uint64) *batch {
	if id < l.base || id-l.base >= uint64(l.next) {
		return nil
	}
	return l.queue[id-l.base]
}

// finish settles a batch.
func (l *lane) finish(b *batch, err error) {
	p := l.p
	i := int(b.id - l.base)
	l.queue[i] = nil
	l.detach(b)
	if i < l.next && b.sent > 0 {
		l.inflight--
	}
	b.err = err
	if err != nil && p.firstErr == nil {
		p.firstErr = err
	}
	p.recycle(b)
	p.budget.give(b.size, int(b.count))
	close(b.done)
	l.trim()
}

// trim drops finished batches at the front.
func (l *lane) trim() {
	for len(l.queue) > 0 && l.queue[0] == nil {
		l.queue = l.queue[1:]
		l.base++
		if l.next > 0 {
			l.next--
		}
	}
}

// requeue gives a batch a new place at the end, to be sent again.
func (l *lane) requeue(b *batch) {
	i := int(b.id - l.base)
	l.queue[i] = nil
	l.inflight--
	l.trim()
	b.id = l.base + uint64(len(l.queue))
	l.queue = append(l.queue, b)
}

// finishAll settles what is left, sent or not.
func (l *lane) finishAll(cause error) {
	for _, b := range l.unfinished(len(l.queue)) {
		l.finish(b, l.givenUp(b, cause))
	}
}

// unfinished lists what is left of the first n in the queue.
func (l *lane) unfinished(n int) []*batch {
	var left []*batch
	for _, b := range l.queue[:n] {
		if b != nil {
			left = append(left, b)
		}
	}
	return left
}

// givenUp is what becomes of a batch because of cause. One that was never written is known not to be stored.
func (l *lane) givenUp(b *batch, cause error) error {
	if b.sent > 0 {
		return unknownOutcome(cause)
	}
	if isAnswer(cause) || errors.Is(cause, ErrClosed) {
		return cause
	}
	return &Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow,
		Message: fmt.Sprintf("a batch of %d records was not sent", b.count), Err: cause,
	}
}

// unknownOutcome is the error of a publish whose answer will not come.
func unknownOutcome(cause error) error {
	return &Error{
		Code: wire.CodeUnacknowledged, Retry: wire.RetryOutcomeUnknown,
		Message: "the records were sent, but no answer came", Err: cause,
	}
}
