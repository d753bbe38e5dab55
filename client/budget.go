package client

// budget bounds what a publisher holds, in bytes and in records. It hands out room in the order of asking, so that a
// large record is not passed by for ever. It is not safe for concurrent use: the publisher's lock guards it.
type budget struct {
	maxBytes, maxRecords int
	bytes, records       int // in use
	waiting              []*roomWaiter
}

// roomWaiter waits for room for one record.
type roomWaiter struct {
	bytes   int
	granted chan struct{} // cap 1, so that granting never blocks
	// done says that it was granted or has given up.
	done bool
}

// fits says whether a record may be taken now. One is always let in, however large it is.
func (b *budget) fits(bytes int) bool {
	return b.records == 0 || b.records < b.maxRecords && b.bytes+bytes <= b.maxBytes
}

// take takes room for a record if nobody waits and there is some.
func (b *budget) take(bytes int) bool {
	if len(b.waiting) > 0 || !b.fits(bytes) {
		return false
	}
	b.bytes += bytes
	b.records++
	return true
}

// wait queues for room.
func (b *budget) wait(bytes int) *roomWaiter {
	w := &roomWaiter{bytes: bytes, granted: make(chan struct{}, 1)}
	b.waiting = append(b.waiting, w)
	return w
}

// giveUp ends a wait. If the room was granted at the same moment, it is given back.
func (b *budget) giveUp(w *roomWaiter) {
	if w.done {
		b.give(w.bytes, 1)
		return
	}
	w.done = true
	b.grant()
}

// give gives room back.
func (b *budget) give(bytes, records int) {
	b.bytes -= bytes
	b.records -= records
	b.grant()
}

// grant lets waiters in, first come first served.
func (b *budget) grant() {
	n := 0
	for _, w := range b.waiting {
		if !w.done {
			if !b.fits(w.bytes) {
				break
			}
			b.bytes += w.bytes
			b.records++
			w.done = true
			w.granted <- struct{}{}
		}
		n++
	}
	b.waiting = append(b.waiting[:0], b.waiting[n:]...)
	clear(b.waiting[len(b.waiting):cap(b.waiting)])
}
