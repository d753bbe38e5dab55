package quorum

import (
	"sync"
	"time"
)

// beats sends the heartbeats of all groups that this server leads to one follower,
// those of the same moment in one frame, and no more often than a lease asks for: raft
// beats each group for itself, ten times within a heartbeat timeout.
type beats struct {
	link *link
	wake chan struct{} // has room for one

	mu      sync.Mutex
	waiting []*beat
	running bool
}

// beat is one group's heartbeat.
type beat struct {
	group, term uint64
	answer      chan beatAnswer // has room for one
}

type beatAnswer struct {
	term, last uint64
	flags      uint64
	err        error
}

// pace is the time between two frames of heartbeats: a lease has room for one that is late.
func (t Timings) pace() time.Duration { return min(t.Lease/2, t.Heartbeat/4) }

// beatTimeout is how long an answer is waited for. By then a lease is long over.
func (t Timings) beatTimeout() time.Duration { return 2 * t.Heartbeat }

// send sends one heartbeat with the next frame and waits for what the follower says.
func (b *beats) send(group uint32, term uint64, closing <-chan struct{}) beatAnswer {
	h := &beat{group: uint64(group), term: term, answer: make(chan beatAnswer, 1)}
	b.mu.Lock()
	if !b.running {
		b.running = b.link.node.run(b.loop)
	}
	running := b.running
	b.waiting = append(b.waiting, h)
	b.mu.Unlock()
	if !running {
		return beatAnswer{err: ErrClosed}
	}
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
	timings := b.link.node.cfg.Timings
	timer := time.NewTimer(timings.pace() + timings.beatTimeout())
	defer timer.Stop()
	asked := time.Now()
	select {
	case a := <-h.answer:
		return a
	case <-closing:
		return beatAnswer{err: ErrClosed}
	case <-timer.C:
		b.link.lanes[laneControl].suspect(asked)
		return beatAnswer{err: errTimeout}
	}
}

func (b *beats) loop() {
	pace := b.link.node.cfg.Timings.pace()
	for next := time.Now(); ; next = time.Now().Add(pace) {
		select {
		case <-b.wake:
		case <-b.link.node.ctx.Done():
			return
		}
		if wait := time.Until(next); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-b.link.node.ctx.Done():
				timer.Stop()
				return
			}
		}
		b.mu.Lock()
		due := b.waiting
		b.waiting = nil
		b.mu.Unlock()
		if len(due) > 0 {
			b.flush(due)
		}
	}
}

func (b *beats) flush(due []*beat) {
	body := make([]byte, 0, 8*len(due))
	byGroup := make(map[uint64]*beat, len(due))
	for _, h := range due {
		if before := byGroup[h.group]; before != nil { // of an earlier term: raft has given it up
			before.answer <- beatAnswer{err: errTimeout}
		}
		byGroup[h.group] = h
	}
	for _, h := range byGroup {
		body = appendUints(body, h.group, h.term)
	}
	fail := func(err error) {
		for _, h := range byGroup {
			h.answer <- beatAnswer{err: err}
		}
	}
	_, err := b.link.lanes[laneControl].start(b.link.node.cfg.Timings.beatTimeout(), frameHeartbeats, 0,
		&call{done: func(f frame, err error) {
			if err == nil {
				err = answerBeats(byGroup, f.body)
			}
			if err != nil {
				fail(err)
			}
		}}, body)
	if err != nil {
		fail(err)
	}
}

// answerBeats hands out the answers of a frame and takes who got one from byGroup.
func answerBeats(byGroup map[uint64]*beat, body []byte) error {
	for d := (decoder{b: body}); len(d.b) > 0; {
		group := d.uint()
		a := beatAnswer{term: d.uint(), last: d.uint(), flags: d.uint()}
		if d.bad {
			return errFrame
		}
		switch {
		case a.flags&flagAbsent != 0:
			a.err = errAbsent
		case a.flags&flagLater != 0:
			a.err = errTimeout
		}
		if h := byGroup[group]; h != nil {
			delete(byGroup, group)
			h.answer <- a
		}
	}
	if len(byGroup) > 0 {
		return errAbsent
	}
	return nil
}
