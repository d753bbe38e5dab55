package quorum

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// laneKind is what a connection carries. Entries have one of their own, so that
// heartbeats and votes never wait behind megabytes.
type laneKind int

const (
	laneControl laneKind = iota
	laneData
	lanes // their number
)

const (
	// A dial that failed is not repeated for a while, which grows from redialAfter to
	// redialAtMost: who calls meanwhile gets its error.
	redialAfter  = 100 * time.Millisecond
	redialAtMost = time.Second
	dialTimeout  = 2 * time.Second
)

var (
	errConnection = errors.New("quorum: connection to peer lost")
	errTimeout    = errors.New("quorum: peer did not answer in time")
	errAbsent     = errors.New("quorum: peer does not have the group open")
)

// absent tells whether nothing but the way to a server failed, or its group is not open yet.
func absent(err error) bool {
	return errors.Is(err, errConnection) || errors.Is(err, errTimeout) || errors.Is(err, errAbsent)
}

// lane is this broker's way to send one kind of requests to a server, over one
// connection at a time, which is dialed when there is something to send.
type lane struct {
	link *link
	kind laneKind

	mu      sync.Mutex
	conn    *wire         // nil: none
	heard   time.Time     // when the last frame came on it
	asked   time.Time     // when the first request went out that has had nothing after it; zero: none has
	dialing chan struct{} // closed when the attempt under way ends; nil: none is
	failed  time.Time     // when the last attempt did, and why
	pause   time.Duration // until the next
	err     error
	calls   map[uint64]*call
	lastID  uint64
}

// call is a request that waits for its answer. One of done's arguments is set; it is
// called once, by the goroutine that reads the connection or that lost it, and must not block.
type call struct {
	conn     *wire
	done     func(f frame, err error)
	progress func() // nil: nobody asks
}

// connection returns the lane's connection, dialing if need be, for at most patience.
func (l *lane) connection(patience time.Duration) (*wire, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil && l.dialing == nil {
		if l.err != nil && time.Since(l.failed) < l.pause {
			return nil, l.err
		}
		attempt := make(chan struct{})
		if !l.link.node.run(func() { l.dial(attempt) }) {
			return nil, ErrClosed
		}
		l.dialing = attempt
	}
	if l.conn != nil {
		return l.conn, nil
	}
	attempt := l.dialing
	l.mu.Unlock()
	timer := time.NewTimer(patience)
	select {
	case <-attempt:
	case <-timer.C:
	}
	timer.Stop()
	l.mu.Lock()
	switch {
	case l.conn != nil:
		return l.conn, nil
	case l.dialing == attempt:
		return nil, errTimeout
	case l.err != nil:
		return nil, l.err
	}
	return nil, errConnection
}

// dial makes a connection and then reads it until it ends.
func (l *lane) dial(attempt chan struct{}) {
	c, err := l.link.node.dialLane(l.link.to, l.kind)
	l.mu.Lock()
	l.dialing = nil
	if err != nil {
		l.failed, l.err = time.Now(), err
		l.pause = min(max(2*l.pause, redialAfter), redialAtMost)
	} else {
		l.conn, l.heard, l.asked, l.err, l.pause = c, time.Now(), time.Time{}, nil, 0
	}
	l.mu.Unlock()
	close(attempt)
	if err == nil {
		l.read(c)
		l.link.node.untrack(c.conn)
	}
}

func (l *lane) read(c *wire) {
	for {
		f, err := c.read()
		if err != nil {
			l.drop(c, fmt.Errorf("%w: %w", errConnection, err))
			return
		}
		l.mu.Lock()
		l.heard = time.Now()
		k := l.calls[f.id]
		if k != nil && f.kind != frameProgress {
			delete(l.calls, f.id)
		}
		if l.asked = l.heard; len(l.calls) == 0 {
			l.asked = time.Time{}
		}
		l.mu.Unlock()
		switch {
		case k == nil: // nobody waits for it any more
		case f.kind == frameProgress:
			if k.progress != nil {
				k.progress()
			}
		case f.kind == frameOK:
			k.done(f, nil)
		case string(f.body) == errAbsent.Error():
			k.done(frame{}, errAbsent)
		default:
			k.done(frame{}, fmt.Errorf("quorum: %s answers: %s", l.link.to, f.body))
		}
	}
}

// drop ends a connection; what waits for answers on it fails.
func (l *lane) drop(c *wire, err error) {
	c.close()
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	var lost []*call
	for id, k := range l.calls {
		if k.conn == c {
			delete(l.calls, id)
			lost = append(lost, k)
		}
	}
	l.mu.Unlock()
	for _, k := range lost {
		k.done(frame{}, err)
	}
}

// suspect is called when an answer did not come in time. The connection is dropped if
// nothing has come for long: the peer may be back behind another one long before this
// one shows that it is dead. The one for entries, which may be silent for
// good reasons, goes with that for heartbeats. A peer that is only slow keeps both.
func (l *lane) suspect() {
	l.mu.Lock()
	c, since := l.conn, l.asked
	l.mu.Unlock()
	if c == nil || since.IsZero() || time.Since(since) < l.link.node.cfg.Timings.suspicion() {
		return
	}
	l.drop(c, errTimeout)
	if l.kind == laneControl {
		l.link.lanes[laneData].dropSilent(since)
	}
}

// suspicion is how long a connection may be silent that has something to answer.
func (t Timings) suspicion() time.Duration { return max(2*t.Heartbeat, time.Second) }

func (l *lane) dropSilent(since time.Time) {
	l.mu.Lock()
	c := l.conn
	silent := c != nil && l.heard.Before(since)
	l.mu.Unlock()
	if silent {
		l.drop(c, errTimeout)
	}
}

// start sends a request. Unless it returns an error, k.done will be called. cancel forgets the request.
func (l *lane) start(patience time.Duration, kind frameKind, group uint32, k *call, parts ...[]byte) (cancel func(), err error) {
	c, err := l.connection(patience)
	if err != nil {
		return nil, err
	}
	k.conn = c
	l.mu.Lock()
	l.lastID++
	id := l.lastID
	l.calls[id] = k
	if l.asked.IsZero() {
		l.asked = time.Now()
	}
	gone := l.conn != c
	l.mu.Unlock()
	if gone {
		err = errConnection
	} else {
		err = c.write(kind, group, id, parts...)
	}
	if err != nil {
		l.drop(c, fmt.Errorf("%w: %w", errConnection, err))
	}
	return func() {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
	}, nil
}

// ask is start for who waits, at most timeout.
func (l *lane) ask(timeout time.Duration, kind frameKind, group uint32, parts ...[]byte) (frame, error) {
	type answer struct {
		f   frame
		err error
	}
	answers := make(chan answer, 1)
	cancel, err := l.start(timeout, kind, group, &call{done: func(f frame, err error) { answers <- answer{f, err} }}, parts...)
	if err != nil {
		return frame{}, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.f, a.err
	case <-timer.C:
		cancel()
		l.suspect()
		return frame{}, errTimeout
	}
}

func (l *lane) close() {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		l.drop(c, ErrClosed)
	}
}
