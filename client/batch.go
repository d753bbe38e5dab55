package client

import (
	"time"
)

// batch is a run of records that go out as one frame and get one answer. The publisher's lock guards it until done is
// closed; then it does not change any more.
type batch struct {
	// id is the request id, and the batch's place in the queue of its lane.
	id uint64
	// key is sent with the batch if keyed: that of its first record. All its records have keys of the same shard.
	key   []byte
	keyed bool

	count uint32
	size  int // of the records
	// records are as on the wire. The buffer is given back as soon as it will not be needed any more.
	records []byte
	created time.Time
	// full says that nothing is added any more.
	full bool

	// sent counts how often the batch was written to a stream. What was sent may have been stored.
	sent int
	// sequence is what an idempotent producer numbered it as, if numbered.
	sequence uint64
	numbered bool
	// held says that the broker refused it only because of one in front of it: it is not stored.
	held bool

	done      chan struct{}
	offset    uint64
	hasOffset bool
	err       error

	// pendings are handed out in chunks, so that a record does not cost an allocation; first is the first chunk.
	pendings []Pending
	first    [1]Pending
}

// pending returns the handle of the record just added.
func (b *batch) pending() *Pending {
	if b.count == 1 {
		b.pendings = b.first[:0]
	} else if len(b.pendings) == cap(b.pendings) {
		b.pendings = make([]Pending, 0, min(max(4, 2*cap(b.pendings)), 64))
	}
	b.pendings = append(b.pendings, Pending{batch: b, index: b.count - 1})
	return &b.pendings[len(b.pendings)-1]
}

// buffer returns an empty buffer for records. The lock is held.
func (p *Publisher) buffer() []byte {
	n := len(p.free)
	if n == 0 {
		return nil
	}
	b := p.free[n-1]
	p.free[n-1] = nil
	p.free = p.free[:n-1]
	return b[:0]
}

// recycle takes the buffer of a batch back. The lock is held.
func (p *Publisher) recycle(b *batch) {
	if b.records != nil && len(p.free) < maxFree && cap(b.records) <= keepRecords {
		p.free = append(p.free, b.records)
	}
	b.records = nil
}
