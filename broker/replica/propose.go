package replica

import (
	"sync"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
)

const (
	// enoughItems and enoughBytes are worth an entry of their own while others are under
	// way; less waits for one of them and then shares the next.
	enoughItems = 64
	enoughBytes = 256 << 10
	// keptItems bounds what an entry that is used again keeps.
	keptItems = 4096
)

// item is one publish on its way.
type item struct {
	s *shard
	p *stream.Publish
}

// proposed is an entry under way.
type proposed struct {
	items []item
	bytes int
	on    proposal
}

// proposer merges the publishes of all shards of a group into entries. A publish that
// finds nothing under way goes at once, on its own goroutine.
type proposer struct {
	g *Group

	mu       sync.Mutex // guards what follows; a leaf
	waiting  []item
	bytes    int // of waiting
	inflight int
	flying   int  // bytes of entries in flight
	sending  bool // somebody makes entries
	closed   error
	free     []*proposed // at most as many as may be in flight

	ordered chan *proposed // in the order in which they were proposed
	stopped chan struct{}  // no more of them come
}

func newProposer(g *Group) *proposer {
	return &proposer{g: g, ordered: make(chan *proposed, g.cfg.InflightEntries), stopped: make(chan struct{})}
}

// propose never blocks; p is answered once.
func (w *proposer) propose(s *shard, p *stream.Publish) {
	if err := w.refuse(s, p); err != nil {
		p.Done(stream.Result{Err: err})
		return
	}
	w.mu.Lock()
	var err error
	switch {
	case w.closed != nil:
		err = w.closed
	case len(w.waiting) > 0 && w.bytes+len(p.Records.Bytes) > w.g.cfg.QueueBytes:
		err = busy("too many publishes wait for the replicas; nothing was written", nil)
	}
	if err != nil {
		w.mu.Unlock()
		p.Done(stream.Result{Err: err})
		return
	}
	w.waiting = append(w.waiting, item{s, p})
	w.bytes += itemSize(p)
	start := w.startLocked()
	w.mu.Unlock()
	if start {
		w.send()
	}
}

// refuse says why a publish cannot be taken; nil: it can, as far as is known here.
func (w *proposer) refuse(s *shard, p *stream.Publish) error {
	if !w.g.serving.Load() {
		return notLeading(nil)
	}
	if err := w.g.Stuck(); err != nil {
		return storageRefusal(err)
	}
	if err := s.broken(); err != nil && s.log.Next() < s.Mark() {
		return storageRefusal(err)
	}
	if size := batchHeader + itemSize(p); size > quorum.MaxEntryBytes {
		return tooLarge(len(p.Records.Bytes), quorum.MaxEntryBytes-batchHeader-itemHeader-itemID)
	}
	return nil
}

// startLocked says that the caller is to send now. The caller holds mu.
func (w *proposer) startLocked() bool {
	if w.sending || len(w.waiting) == 0 || w.holds() {
		return false
	}
	w.sending = true
	return true
}

// holds says that what waits is to wait on. The caller holds mu.
func (w *proposer) holds() bool {
	return w.inflight >= w.g.cfg.InflightEntries || w.flying >= w.g.cfg.InflightBytes ||
		w.inflight > 0 && len(w.waiting) < enoughItems && w.bytes < enoughBytes
}

// send makes entries of what waits until it is to wait on. One at a time, so that the
// order of publishes is that of entries; it never waits itself.
func (w *proposer) send() {
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 || w.holds() {
			w.sending = false
			w.mu.Unlock()
			return
		}
		e := w.takeLocked()
		w.mu.Unlock()
		b := appendBatchHeader(make([]byte, 0, e.bytes), w.g.cfg.Now().UnixMicro(), len(e.items))
		for _, i := range e.items {
			b = appendItem(b, i.s.slot, i.p)
		}
		w.g.cfg.Metrics.Proposed(len(e.items), len(b))
		e.on = w.g.Propose(b)
		w.ordered <- e // has room for all that may be in flight
	}
}

// takeLocked cuts the next entry off what waits. The caller holds mu.
func (w *proposer) takeLocked() *proposed {
	n, size := 0, batchHeader
	for n < len(w.waiting) {
		more := itemSize(w.waiting[n].p)
		if n > 0 && size+more > w.g.cfg.EntryBytes {
			break
		}
		size += more
		n++
	}
	e := new(proposed)
	if k := len(w.free); k > 0 {
		e, w.free = w.free[k-1], w.free[:k-1]
	}
	e.bytes = size
	if n == len(w.waiting) {
		e.items, w.waiting = w.waiting, e.items[:0]
	} else {
		e.items = append(e.items[:0], w.waiting[:n]...)
		rest := copy(w.waiting, w.waiting[n:])
		clear(w.waiting[rest:])
		w.waiting = w.waiting[:rest]
	}
	w.bytes -= size - batchHeader
	w.inflight++
	w.flying += size
	return e
}

// answer tells publishers what came of their entries, in order. It ends when the
// proposer is closed and everything is answered.
func (w *proposer) answer() {
	stopped := w.stopped
	for {
		var e *proposed
		select {
		case e = <-w.ordered:
		case <-stopped:
			stopped = nil
		}
		if e == nil {
			if w.idle() {
				return
			}
			continue
		}
		<-e.on.Done()
		e.finish() // before the next is made: who is answered may have more for it
		w.mu.Lock()
		w.inflight--
		w.flying -= e.bytes
		if clear(e.items); cap(e.items) <= keptItems {
			w.free = append(w.free, e)
		}
		start := w.startLocked()
		w.mu.Unlock()
		if start {
			w.send()
		}
		if stopped == nil && w.idle() {
			return
		}
	}
}

// idle says that nothing is under way.
func (w *proposer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inflight == 0
}

// finish answers the publishes of an entry.
func (e *proposed) finish() {
	got, err := e.on.Result()
	results, _ := got.([]stream.Result)
	if err == nil && len(results) != len(e.items) { // the machine was interrupted in it
		err = ErrClosed
	}
	e.on = nil
	for i, it := range e.items {
		if err != nil {
			it.p.Done(stream.Result{Err: publishError(err)})
			continue
		}
		it.p.Done(results[i])
	}
}

// drop refuses what waits and was not proposed.
func (w *proposer) drop(err error) {
	w.mu.Lock()
	lost := w.waiting
	w.waiting, w.bytes = nil, 0
	w.mu.Unlock()
	for _, i := range lost {
		i.p.Done(stream.Result{Err: err})
	}
}

// close refuses what waits and what comes. What is under way is answered as its
// quorum group ends, and answer with it.
func (w *proposer) close() {
	w.mu.Lock()
	w.closed = notLeading(ErrClosed)
	w.mu.Unlock()
	w.drop(notLeading(ErrClosed))
	close(w.stopped)
}
