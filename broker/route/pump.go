package route

import (
	"time"

	"felix.dev/felix/broker/stream"
)

// inlineSends bounds how many publishes somebody sends who only brought one.
const inlineSends = 64

// pump sends what waits and can be sent. One at a time does; who comes meanwhile leaves
// what he brought to that one, who looks again after each publish.
func (p *Place) pump() { p.run(inlineSends) }

func (p *Place) run(most int) {
	var refused []*entry
	p.mu.Lock()
	if p.pumping {
		p.mu.Unlock()
		return
	}
	p.pumping = true
	for n := 0; ; n++ {
		if n == most {
			p.f.look(p)
			break
		}
		e := p.next(&refused)
		if e == nil {
			break
		}
		shard := p.to.shard
		if shard == nil { // the link has it already
			continue
		}
		p.mu.Unlock()
		e.pub.Done = e.local
		shard.Publish(e.pub)
		p.mu.Lock()
	}
	p.pumping = false
	fresh := len(p.waiting)+len(p.back) > 0 && !p.listed
	if fresh {
		p.listed, p.listedAt = true, p.f.now()
	}
	p.mu.Unlock()
	if fresh {
		p.f.look(p)
	}
	finishAll(refused)
}

// finishAll tells the publishers of refused entries why.
func finishAll(refused []*entry) {
	for _, e := range refused {
		e.finish(stream.Result{Err: e.last})
	}
}

// next takes the oldest entry that can be sent now, and gives it to the link if it is
// for one; nil: there is none, for the time being. The caller holds mu.
func (p *Place) next(refused *[]*entry) *entry {
	if len(p.back) > 0 {
		if p.underway > 0 {
			p.hold(p.reason, refused)
			return nil
		}
		p.merge(refused)
	}
	if len(p.waiting) == 0 {
		p.unhold()
		return nil
	}
	s := p.correct(p.f.cfg.Table.Lookup(p.key))
	if s.Gone {
		p.unhold()
		p.drop(refused, len(p.waiting), func(*entry) error { return notFound() })
		return nil
	}
	if s.Local == nil && s.Node == "" {
		p.hold(s.Reason, refused)
		return nil
	}
	same := p.to.same(&s)
	switch {
	case !same && p.underway > 0: // what is under way comes first
		p.hold(stream.ReasonMoving, refused)
		return nil
	case !same || p.to.link != nil && p.to.owner.Generation != s.Generation:
		p.to = p.taker(&s)
	}
	if s.Generation > p.newest { // not one that was asked already
		p.newest, p.backoff, p.retryAt = s.Generation, 0, time.Time{}
	}
	if !p.retryAt.IsZero() && p.f.now().Before(p.retryAt) {
		p.hold(p.why, refused)
		return nil
	}
	e := p.waiting[0]
	if !e.heldAt.IsZero() {
		e.held += p.f.now().Sub(e.heldAt)
		e.heldAt = time.Time{}
	}
	if p.to.link != nil {
		if p.underway > 0 && (p.underwayBytes+e.size() > p.f.cfg.WindowBytes || p.underway >= p.f.cfg.WindowEntries) {
			p.unhold()
			return nil // the next answer goes on
		}
		switch at, a := p.to.link.admit(p, e, p.round); a {
		case admitted:
			p.underwayBytes += e.size()
		case full:
			p.unhold()
			return nil // the link goes on
		case down:
			p.retryAt, p.why = at, stream.ReasonOwnerUnavailable
			p.hold(p.why, refused)
			return nil
		}
	}
	p.unhold()
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	p.bytes -= e.size()
	p.underway++
	return e
}

func (p *Place) taker(s *State) taker {
	if s.Local != nil {
		return taker{shard: s.Local}
	}
	return taker{link: p.f.link(s.Node), owner: &stream.Owner{NodeID: s.Node, Addr: s.Addr, Generation: s.Generation}}
}

// drop refuses the newest n entries of the queue. The caller holds mu, and tells their
// publishers when it does not.
func (p *Place) drop(refused *[]*entry, n int, why func(*entry) error) {
	keep := len(p.waiting) - n
	for _, e := range p.waiting[keep:] {
		p.bytes -= e.size()
		e.last = why(e)
		*refused = append(*refused, e)
	}
	clear(p.waiting[keep:])
	p.waiting = p.waiting[:keep]
}

// hold keeps what waits until somebody is known to take it, for the time that each may
// wait and as many as may. The newest are refused first. The caller holds mu.
func (p *Place) hold(reason string, refused *[]*entry) {
	begins := !p.held
	p.held, p.reason = true, reason
	now := p.f.now()
	for _, list := range [...][]*entry{p.waiting, p.back} {
		for _, e := range list {
			if e.heldAt.IsZero() {
				e.heldAt = now
			}
			p.soonest(e.due(p.f.cfg.HoldTime, true))
		}
	}
	n := len(p.waiting) + len(p.back)
	over := p.f.holds(n-p.heldN) - int64(p.f.cfg.MaxHeld)
	p.heldN = n
	if over > 0 {
		k := min(int(over), len(p.waiting))
		p.f.holds(-k)
		p.heldN -= k
		p.drop(refused, k, func(e *entry) error { return e.expired(reason) })
	}
	if begins && p.listed {
		p.f.look(p)
	}
}

// unhold is for a place that has somebody to send to, or nothing to send. The caller
// holds mu.
func (p *Place) unhold() {
	p.held = false
	if p.heldN > 0 {
		p.f.holds(-p.heldN)
		p.heldN = 0
	}
}
