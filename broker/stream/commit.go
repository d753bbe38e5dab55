package stream

// logCommitted is the log's callback: everything below next is committed, or, with
// an error, nothing more ever will be.
func (s *Shard) logCommitted(next uint64, err error) {
	if err != nil {
		s.poison(err)
		return
	}
	q := &s.queue
	q.mu.Lock()
	n := 0
	for n < len(q.inflight) && q.inflight[n].end <= next {
		n++
	}
	done := append(s.done[:0], q.inflight[:n]...)
	rest := copy(q.inflight, q.inflight[n:])
	clear(q.inflight[rest:])
	q.inflight = q.inflight[:rest]
	start := !q.running && len(q.waiting) > 0 && !s.holds()
	if start {
		q.running = true
	}
	q.idle.Broadcast()
	q.mu.Unlock()
	s.commit(done...)
	clear(done)
	s.done = done
	if start { // not here: the log's goroutine must be free for what an append waits for
		s.tasks.Go(func() { s.sequence(false) })
	}
}

// commit makes claims readable, wakes who waits for them, and answers.
func (s *Shard) commit(cs ...*claim) {
	if len(cs) == 0 {
		return
	}
	for _, c := range cs {
		for _, f := range c.frames {
			s.tail.show(f.c, f.upTo, f.entries)
		}
	}
	s.mark.Store(cs[len(cs)-1].end)
	s.watchers.wake()
	for _, c := range cs {
		for _, p := range c.publishes {
			p.Done(Result{Offset: p.offset})
		}
		for _, p := range c.echoes {
			p.Done(Result{Offset: p.offset})
		}
		c.release()
	}
}

// poison fails what is in flight and refuses what comes: the log could not make it
// durable, and nobody knows what is on the disk.
func (s *Shard) poison(err error) {
	failure := commitError(err)
	s.failed.Store(failure)
	s.blockers.signal()
	s.queue.mu.Lock()
	lost := s.queue.inflight
	s.queue.inflight = nil
	s.queue.idle.Broadcast()
	start := !s.queue.running && len(s.queue.waiting) > 0
	if start {
		s.queue.running = true
	}
	s.queue.mu.Unlock()
	for _, c := range lost {
		c.fail(failure)
	}
	if start {
		s.tasks.Go(func() { s.sequence(false) })
	}
}
