package quorum

import (
	"sync"
	"time"
)

// beats sends the heartbeats of all groups that this server leads to one follower,
// those of the same moment in one frame, at the node's pace. raft beats each group for itself, ten
// times within a heartbeat timeout; it is given the last answer while that is fresh.
type beats struct {
	link *link
	wake chan struct{} // has room for one

	mu      sync.Mutex
	of      map[uint32]*beat
	running bool
}

// beat is one group's heartbeat.
type beat struct {
	term   uint64
	leader leader
	asked  time.Time // when raft last did
	at     time.Time // when the answer's frame was sent; zero: there was none in this term
	answer beatAnswer
	next   chan struct{} // closed when there is another answer; nil: nobody waits
}

// leader tells whether this server leads a group in a term, as far as others shall know.
type leader interface{ leads(term uint64) bool }

type beatAnswer struct {
	term, last uint64
	flags      uint64
	err        error
}

// pace is the time between two frames of heartbeats: a heartbeat timeout has room for several.
func (t Timings) pace() time.Duration { return t.Heartbeat / 3 }

// fresh is how old an answer may be that raft is given. A leader that hears nothing
// gives up after one lease and this.
func (t Timings) fresh() time.Duration { return max(t.Lease, t.pace()*3/2) }

// beatTimeout is how long an answer is waited for. By then a lease is long over.
func (t Timings) beatTimeout() time.Duration { return 2 * t.Heartbeat }

// send waits for the next frame, and returns what the follower said to one a moment ago, or else what it says.
func (b *beats) send(group uint32, term uint64, by leader, closing <-chan struct{}) beatAnswer {
	timings := b.link.node.cfg.Timings
	now := time.Now()
	b.mu.Lock()
	h := b.of[group]
	if h == nil || h.term != term {
		if h != nil && h.next != nil {
			close(h.next) // raft has given that term up
		}
		h = &beat{term: term, leader: by}
		b.of[group] = h
	}
	h.asked = now
	if h.next == nil {
		h.next = make(chan struct{})
	}
	next := h.next
	if !b.running {
		b.running = b.link.node.run(b.loop)
	}
	running := b.running
	b.mu.Unlock()
	if !running {
		return beatAnswer{err: ErrClosed}
	}
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
	timer := time.NewTimer(timings.pace() + timings.beatTimeout())
	defer timer.Stop()
	select {
	case <-next:
		b.mu.Lock()
		defer b.mu.Unlock()
		if h.at.IsZero() && h.answer.err == nil {
			return beatAnswer{err: errTimeout} // there is another term by now
		}
		return h.answer
	case <-closing:
		return beatAnswer{err: ErrClosed}
	case <-timer.C:
		b.link.lanes[laneControl].suspect()
		return beatAnswer{err: errTimeout}
	}
}

// loop sends a frame at each tick for as long as raft asks, and sleeps while it does not.
func (b *beats) loop() {
	for {
		if !b.link.node.untilTick() {
			return
		}
		if b.flush(time.Now()) {
			continue
		}
		select {
		case <-b.wake:
		case <-b.link.node.ctx.Done():
			return
		}
	}
}

// untilTick waits for the node's next tick: all that it does at its own pace it does at the same
// moments, so that an idle process sleeps in between. It returns false when the node closes.
func (n *Node) untilTick() bool {
	pace := n.cfg.Timings.pace()
	timer := time.NewTimer(pace - time.Since(n.began)%pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// flush sends a frame. It returns false when no group has anything to say.
func (b *beats) flush(now time.Time) bool {
	body := b.due(now)
	if body == nil {
		return false
	}
	_, err := b.link.lanes[laneControl].start(b.link.node.cfg.Timings.beatTimeout(), frameHeartbeats, 0,
		&call{done: func(f frame, err error) { b.answered(now, f.body, err) }}, body)
	if err != nil {
		b.answered(now, nil, err)
	}
	return true
}

// due encodes the heartbeats of a frame, and forgets groups that raft asks for no more.
// Who has an answer that is fresh need not wait for the next.
func (b *beats) due(now time.Time) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := b.link.node.cfg.Timings.fresh()
	var body []byte
	for group, h := range b.of {
		if !h.leader.leads(h.term) || h.next == nil && now.Sub(h.asked) > b.link.node.cfg.Timings.Heartbeat {
			if h.next != nil {
				close(h.next)
			}
			delete(b.of, group)
			continue
		}
		body = appendUints(body, uint64(group), h.term)
		if h.next != nil && !h.at.IsZero() && now.Sub(h.at) < fresh {
			close(h.next)
			h.next = nil
		}
	}
	return body
}

// answered hands out what came of a frame that was sent at a moment. A lost frame is
// told to who waits, and to nobody else: the next one may not be.
func (b *beats) answered(sent time.Time, body []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d := (decoder{b: body}); err == nil && len(d.b) > 0; {
		group, term := d.uint(), d.uint()
		a := beatAnswer{term: d.uint(), last: d.uint(), flags: d.uint()}
		switch {
		case d.bad:
			err = errFrame
			continue
		case a.flags&flagAbsent != 0:
			a.err = errAbsent
		case a.flags&flagLater != 0:
			a.err = errTimeout
		}
		if h := b.of[uint32(group)]; h != nil && h.term == term {
			h.say(a, sent)
		}
	}
	if err == nil {
		return
	}
	for _, h := range b.of {
		if h.next != nil && h.asked.Before(sent) {
			h.say(beatAnswer{err: err}, time.Time{})
		}
	}
}

// say is with beats.mu held. An answer that is no answer is not kept.
func (h *beat) say(a beatAnswer, sent time.Time) {
	h.answer = a
	h.at = sent
	if a.err != nil {
		h.at = time.Time{}
	}
	if h.next != nil {
		close(h.next)
		h.next = nil
	}
}
