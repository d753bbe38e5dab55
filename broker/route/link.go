package route

import (
	"context"
	"net"
	"sync"
	"time"

	"felix.dev/felix/broker/stream"
)

// link is the connection to one owner: there while there is something to send, and for
// some time after.
type link struct {
	f    *Forwarder
	node string

	mu      sync.Mutex
	state   linkState
	retryAt time.Time // of a failed attempt to connect
	backoff time.Duration
	closing bool // no more connections
	stop    context.CancelFunc

	out     []*entry          // to be written
	sent    map[uint64]*entry // given to the writer, by id
	bytes   int64             // of both
	id      uint64            // the last one given
	started uint64            // ids up to this one may have reached the owner
	written uint64            // ids up to this one need their records no more
	busy    time.Time         // since when there is something without a pause
	due     time.Time         // not later than the first entry is to be given up
	blocked []*Place          // found the link full or down

	kick chan struct{} // capacity 1: something for the writer
	ping bool          // the writer is to send one
}

type linkState uint8

const (
	linkIdle linkState = iota
	linkDialing
	linkUp
)

// admission is what became of an entry that a link was given.
type admission uint8

const (
	admitted admission = iota
	full               // the link pumps the place when there is room
	down               // the link pumps the place when it is up, or it is to be asked again
)

const (
	firstRedial = 20 * time.Millisecond
	lastRedial  = time.Second
)

func newLink(f *Forwarder, node string) *link {
	return &link{f: f, node: node, sent: make(map[uint64]*entry), kick: make(chan struct{}, 1)}
}

// admit takes an entry of p, in its turn. With down it is not to be asked before at; zero:
// it says when. The caller holds p.mu.
func (l *link) admit(p *Place, e *entry, round uint32) (at time.Time, a admission) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing:
		return l.f.now().Add(lastRetry), down
	case l.state == linkIdle:
		now := l.f.now()
		if now.Before(l.retryAt) {
			return l.retryAt, down
		}
		l.state = linkDialing
		ctx, cancel := context.WithCancel(context.Background())
		l.stop = cancel
		l.f.tasks.Go(func() { l.run(ctx) })
		fallthrough
	case l.state == linkDialing:
		l.blocked = append(l.blocked, p)
		return time.Time{}, down
	}
	n := len(l.out) + len(l.sent)
	if n > 0 && (n >= l.f.cfg.OwnerEntries || l.bytes+e.size() > l.f.cfg.OwnerBytes) {
		l.blocked = append(l.blocked, p)
		return time.Time{}, full
	}
	if n == 0 {
		l.busy = l.f.now()
	}
	if l.due.IsZero() || e.deadline.Before(l.due) {
		l.due = e.deadline
	}
	e.round, e.owner, e.hasEarly = round, p.to.owner, false
	l.out = append(l.out, e)
	l.bytes += e.size()
	l.wake()
	return time.Time{}, admitted
}

// wake has the writer look. The caller holds mu or needs not.
func (l *link) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// load is how many publishes are on their way.
func (l *link) load() (n int, up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.out) + len(l.sent), l.state == linkUp
}

// close ends the connection once nothing is on its way.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	if l.stop != nil && len(l.out)+len(l.sent) == 0 {
		l.stop()
	}
}

// abort ends the connection now.
func (l *link) abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	if l.stop != nil {
		l.stop()
	}
}

// run connects and serves one connection to its end.
func (l *link) run(ctx context.Context) {
	conn, err := l.dial(ctx)
	if err == nil {
		err = l.serve(ctx, conn)
	}
	l.over(err)
}

func (l *link) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.f.cfg.DialTimeout)
	defer cancel()
	return l.f.cfg.Dial(ctx, l.node)
}

// over gives back what is not answered. Nobody writes or reads any more.
func (l *link) over(err error) {
	l.mu.Lock()
	failedDial := l.state == linkDialing
	l.state = linkIdle
	l.stop()
	l.stop = nil
	if failedDial {
		l.backoff = min(max(2*l.backoff, firstRedial), lastRedial)
		l.retryAt = l.f.now().Add(l.backoff)
	}
	lost := make([]*entry, 0, len(l.out)+len(l.sent))
	maybe := make([]bool, 0, cap(lost))
	for id, e := range l.sent {
		lost = append(lost, e)
		maybe = append(maybe, id <= l.started)
	}
	for _, e := range l.out {
		lost = append(lost, e)
		maybe = append(maybe, false)
	}
	clear(l.sent)
	l.out, l.bytes = nil, 0
	blocked := l.blocked
	l.blocked = nil
	l.mu.Unlock()
	if err != nil {
		l.f.complain(l.node, err, len(lost))
	}
	for i, e := range lost {
		r := stream.Result{Err: unavailable(stream.ReasonOwnerUnavailable)}
		switch {
		case e.hasEarly:
			r = e.early
		case maybe[i]:
			r.Err = unknown("the connection to the shard's broker was lost; it may have been written")
		}
		e.place.answered(e, r, true)
	}
	for _, p := range blocked {
		l.f.look(p)
	}
}
