package route

import (
	"time"

	"felix.dev/felix/broker/stream"
)

// watch looks after what waits: it sends on when the table changes, and gives up what has
// waited for too long. While nothing waits it sleeps.
func (f *Forwarder) watch() {
	listed := make(map[*Place]time.Time) // and when to look again
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		// Before anything is looked up: a change in between is not missed.
		changed := f.cfg.Table.Changed()
		for p := range listed {
			f.visit(listed, p)
		}
		for again := true; again; {
			timer.Reset(f.untilNext(listed))
			select {
			case <-changed:
				again = false
			case <-timer.C:
				now := f.now()
				for p, at := range listed {
					if !now.Before(at) {
						f.visit(listed, p)
					}
				}
			case <-f.kick:
				f.mu.Lock()
				fresh := f.fresh
				f.fresh = nil
				f.mu.Unlock()
				for _, p := range fresh {
					f.visit(listed, p)
				}
			case <-f.closing:
				return
			}
		}
	}
}

func (f *Forwarder) visit(listed map[*Place]time.Time, p *Place) {
	p.run(watchSends)
	if at, more := p.inspect(f.now()); more {
		listed[p] = at
	} else {
		delete(listed, p)
	}
}

// watchSends is how many publishes of one place the watcher sends before it sees to others.
const watchSends = 1024

func (f *Forwarder) untilNext(listed map[*Place]time.Time) time.Duration {
	next := time.Hour
	now := f.now()
	for _, at := range listed {
		next = min(next, at.Sub(now))
	}
	return max(next, 0)
}

// inspect gives up what has waited for too long, and says when to look again; false: not
// before somebody says so.
func (p *Place) inspect(now time.Time) (at time.Time, more bool) {
	var refused []*entry
	p.mu.Lock()
	if !p.due.IsZero() && !now.Before(p.due) {
		p.due = time.Time{}
		p.waiting = p.giveUp(p.waiting, now, &refused)
		p.back = p.giveUp(p.back, now, &refused)
		if p.held {
			n := len(p.waiting) + len(p.back)
			p.f.holds(n - p.heldN)
			p.heldN = n
		}
	}
	if len(p.waiting)+len(p.back) > 0 {
		at, more = p.due, true
		if p.held && p.retryAt.After(now) && p.retryAt.Before(at) {
			at = p.retryAt
		}
	} else {
		p.unhold()
		p.due = time.Time{}
		// A busy place comes and goes; who is listed costs nothing.
		at = p.listedAt.Add(p.f.cfg.HoldTime)
		more = p.listed && now.Before(at)
		p.listed = more
	}
	p.mu.Unlock()
	finishAll(refused)
	return at, more
}

// giveUp takes out of list what is due. The caller holds mu.
func (p *Place) giveUp(list []*entry, now time.Time, refused *[]*entry) []*entry {
	keep := list[:0]
	for _, e := range list {
		due := e.due(p.f.cfg.HoldTime, p.held)
		if now.Before(due) {
			p.soonest(due)
			keep = append(keep, e)
			continue
		}
		p.bytes -= e.size()
		reason := p.reason
		if !p.held {
			reason = stream.ReasonOwnerUnavailable
		}
		e.last = e.expired(reason)
		*refused = append(*refused, e)
	}
	clear(list[len(keep):])
	return keep
}
