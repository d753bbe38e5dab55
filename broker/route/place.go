package route

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// Place is one shard, as this broker sees it, and what is published to it from here. It
// is a stream.Place.
//
// What is under way is always with one taker, in the order it came. If something of it
// comes back, nothing is sent until all of it is answered or back; then it goes on in
// the old order. So a batch never overtakes another of its shard.
type Place struct {
	f   *Forwarder
	key Key

	mu      sync.Mutex
	waiting []*entry // by seq
	back    []*entry // were under way and are not taken
	seq     uint64
	written uint64 // behind the last one that is known to be written
	bytes   int64  // of waiting and back

	to            taker // of what is under way
	underway      int
	underwayBytes int64
	round         uint32 // of what is sent to others; a new one begins after something came back

	pumping bool // somebody is in pump
	removed error

	held    bool   // nobody is known to take what waits
	reason  string // why
	heldN   int    // of Forwarder.held
	retryAt time.Time
	why     string // not before
	backoff time.Duration
	newest  uint64 // generation of those who were asked
	hint    State  // who the last owner said is the owner

	listed   bool      // the forwarder looks after what waits
	listedAt time.Time // since when
	due      time.Time // not later than the first entry is to be given up
}

// taker is who takes the publishes of a shard: it, if it is here, or its owner.
type taker struct {
	shard *stream.Shard
	link  *link
	owner *stream.Owner // of link
}

func (t *taker) none() bool { return t.shard == nil && t.link == nil }

// same says whether t is still who is meant; only a link's name of its owner may differ.
func (t *taker) same(s *State) bool {
	if s.Local != nil {
		return t.shard == s.Local
	}
	return t.link != nil && t.link.node == s.Node
}

// Here gives the shard if it is here, and else who has it.
func (p *Place) Here() (*stream.Shard, *stream.Elsewhere) {
	s := p.state()
	switch {
	case s.Local != nil:
		return s.Local, nil
	case s.Node != "" && s.Addr != "":
		return nil, &stream.Elsewhere{NodeID: s.Node, Addr: s.Addr, Generation: s.Generation}
	}
	return nil, &stream.Elsewhere{Generation: s.Generation, Reason: cmp.Or(s.Reason, stream.ReasonNotReady)}
}

// Generation is that of whoever serves the shard.
func (p *Place) Generation() uint64 { return p.f.cfg.Table.Lookup(p.key).Generation }

func (p *Place) state() State {
	s := p.f.cfg.Table.Lookup(p.key)
	if s.Local != nil || s.Gone {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.correct(s)
}

// correct prefers what the last owner said to what this broker knows, if it is newer.
func (p *Place) correct(s State) State {
	if p.hint.Node != "" && p.hint.Generation > s.Generation && s.Local == nil {
		return p.hint
	}
	return s
}

// Publish takes a batch to its shard. What waits for nobody goes on at once.
func (p *Place) Publish(pub *stream.Publish) {
	e := newEntry(p, pub)
	p.mu.Lock()
	if err := p.refusing(e); err != nil {
		p.mu.Unlock()
		e.finish(stream.Result{Err: err})
		return
	}
	e.seq = p.seq
	p.seq++
	if !p.pumping && len(p.waiting)+len(p.back) == 0 {
		// Publishers of a shard that is here do not wait for each other.
		if s := p.f.cfg.Table.Lookup(p.key); s.Local != nil && (p.underway == 0 || p.to.shard == s.Local) {
			p.to = taker{shard: s.Local}
			p.underway++
			p.mu.Unlock()
			pub.Done = e.local
			s.Local.Publish(pub)
			return
		}
	}
	p.queue(e, p.f.now())
	p.mu.Unlock()
	p.pump()
}

// refusing says why e cannot be taken. The caller holds mu.
func (p *Place) refusing(e *entry) error {
	cfg := &p.f.cfg
	switch {
	case p.removed != nil:
		return p.removed
	case p.to.shard != nil && len(p.waiting) == 0: // the shard's own bounds
		return nil
	case len(p.waiting)+len(p.back)+p.underway >= cfg.ShardEntries,
		p.bytes+p.underwayBytes > 0 && p.bytes+p.underwayBytes+e.size() > cfg.ShardBytes:
		return overloaded("too many publishes wait for the shard's broker")
	}
	return nil
}

// queue lets e wait. The caller holds mu.
func (p *Place) queue(e *entry, now time.Time) {
	if e.deadline.IsZero() {
		e.deadline = now.Add(p.f.cfg.AnswerTimeout)
	}
	p.waiting = append(p.waiting, e)
	p.bytes += e.size()
	p.soonest(e.deadline)
}

func (p *Place) soonest(t time.Time) {
	if p.due.IsZero() || t.Before(p.due) {
		p.due = t
	}
}

// answered is called once for each entry that was sent.
func (p *Place) answered(e *entry, r stream.Result, remote bool) {
	if r.Err != nil {
		switch v := judge(r.Err, remote); {
		case v == again, v == unsure && e.pub.HasProducer:
			e.maybe = e.maybe || v == unsure
			p.takeBack(e, r.Err)
			return
		case e.maybe && !isRefused(r.Err):
			r.Err = unknown("an earlier attempt to write it may have succeeded")
		}
	}
	p.mu.Lock()
	p.settle(e)
	if r.Err == nil {
		p.backoff, p.retryAt = 0, time.Time{}
		p.written = max(p.written, e.seq+1)
	}
	more := len(p.waiting)+len(p.back) > 0
	p.mu.Unlock()
	e.finish(r)
	switch {
	case !more:
	case remote:
		p.pump()
	default: // a shard's commit must not call a shard
		p.f.look(p)
	}
}

// settle takes e from what is under way. The caller holds mu.
func (p *Place) settle(e *entry) {
	p.underway--
	if p.to.link != nil {
		p.underwayBytes -= e.size()
	}
}

// gaveUp answers an entry that was sent and was not answered in time.
func (p *Place) gaveUp(e *entry, why error) {
	p.mu.Lock()
	p.settle(e)
	p.mu.Unlock()
	e.finish(stream.Result{Err: why})
	p.pump()
}

// hinted is told by an owner that takes nothing who the owner is. An older one than was
// asked is not believed, so that two brokers cannot send a publish to and fro.
func (p *Place) hinted(h State) {
	if h.Node == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Node != p.f.cfg.Self && p.to.owner != nil && h.Generation > p.to.owner.Generation && h.Generation > p.hint.Generation {
		p.hint = h
	}
}

// takeBack keeps an entry that was not taken, or perhaps not, to send it again.
func (p *Place) takeBack(e *entry, err error) {
	now := p.f.now()
	p.mu.Lock()
	p.settle(e)
	e.last = err
	if e.deadline.IsZero() {
		e.deadline = now.Add(p.f.cfg.AnswerTimeout)
	}
	if gone := p.removed; gone != nil {
		p.mu.Unlock()
		if e.maybe {
			gone = e.expired("")
		}
		e.finish(stream.Result{Err: gone})
		return
	}
	if p.to.link != nil && p.hint.Node == p.to.link.node { // it is not the owner either
		p.hint = State{}
	}
	p.back = append(p.back, e)
	p.bytes += e.size()
	p.soonest(e.deadline)
	p.retryLater(now, err)
	p.f.m.Again.Inc()
	p.mu.Unlock()
	p.f.look(p)
}

// retryLater waits longer each time that a taker takes nothing. The caller holds mu.
func (p *Place) retryLater(now time.Time, err error) {
	p.why = stream.ReasonNotReady
	if e, ok := errors.AsType[*stream.Error](err); ok && e.Code == wire.CodeShardUnavailable {
		p.why = e.Reason
	}
	if now.Before(p.retryAt) {
		return
	}
	p.backoff = min(max(2*p.backoff, firstRetry), lastRetry)
	p.retryAt = now.Add(p.backoff)
}

const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 250 * time.Millisecond
)

// merge puts what came back where it was. What has been overtaken meanwhile is refused:
// that takes a shard that stopped and began to take publishes while it had both. The
// caller holds mu.
func (p *Place) merge(refused *[]*entry) {
	for _, e := range p.back {
		if e.seq >= p.written || e.pub.HasProducer { // sequences have their order anyway
			p.waiting = append(p.waiting, e)
			continue
		}
		p.bytes -= e.size()
		e.last = e.expired(stream.ReasonNotReady)
		*refused = append(*refused, e)
	}
	clear(p.back)
	p.back = p.back[:0]
	slices.SortFunc(p.waiting, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	p.round++
}
