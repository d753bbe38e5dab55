package replica

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"felix.dev/felix/broker/seglog"
)

const (
	// fetchIdle is how long the other side may take to ask again, or to take a page.
	fetchIdle = time.Minute
	// fetchesAtOnce bounds the pages that are in memory at a time.
	fetchesAtOnce = 4
)

// Fetches answers the fetches of other brokers, for all groups of this one. It has no
// goroutines of its own.
type Fetches struct {
	mu     sync.RWMutex // a leaf
	groups map[uint32]*Group
	turns  chan struct{}
}

// NewFetches serves no group yet.
func NewFetches() *Fetches {
	return &Fetches{groups: make(map[uint32]*Group), turns: make(chan struct{}, fetchesAtOnce)}
}

// Add has a group's records fetched from here.
func (f *Fetches) Add(g *Group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.groups[g.cfg.Group] = g
}

// Remove has them fetched no longer.
func (f *Fetches) Remove(g *Group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.groups[g.cfg.Group] == g {
		delete(f.groups, g.cfg.Group)
	}
}

// Serve answers one connection, and closes it: the handler of peer.KindFetch.
func (f *Fetches) Serve(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }() // who fetches begins again where it was
	unhook := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer unhook()
	var out, frames []byte
	for ctx.Err() == nil {
		if c.SetDeadline(time.Now().Add(fetchIdle)) != nil {
			return
		}
		q, err := readRequest(c)
		if err != nil {
			return
		}
		select {
		case f.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		out, frames = f.read(&q, out[:0], frames)
		_, err = c.Write(out)
		<-f.turns
		if err != nil {
			return
		}
		if cap(out) > 2*maxFetchBytes {
			out, frames = nil, nil
		}
	}
}

// read makes the answer to one request.
func (f *Fetches) read(q *request, out, frames []byte) (_, _ []byte) {
	f.mu.RLock()
	g := f.groups[q.group]
	f.mu.RUnlock()
	if g == nil {
		return (&page{status: statusNoGroup}).append(out), frames
	}
	applied := g.appliedUpTo() // before it is looked for: one that is missing was dropped by then
	s := g.find(q.key)
	if s == nil {
		return (&page{status: statusNoShard, next: applied}).append(out), frames
	}
	p := page{status: statusOK, oldest: s.Oldest(), next: min(s.Mark(), s.log.Next())}
	switch {
	case s.broken() != nil:
		p.status = statusUnreadable
	case q.from < p.oldest:
		p.status = statusTooOld
	default:
		var err error
		var old *seglog.TooOldError
		if p.records, frames, err = s.log.Records(q.from, int(q.maxBytes), frames); errors.As(err, &old) {
			p.status, p.oldest = statusTooOld, old.Oldest
		} else if err != nil {
			p.status = statusUnreadable
			if _, damaged := errors.AsType[*seglog.CorruptionError](err); damaged {
				s.damaged(err)
			}
			g.cfg.Log.Warn("records that another broker asked for cannot be read", "shard", s.key, "from", q.from, "err", err)
		}
	}
	g.cfg.Metrics.Sent(len(frames))
	return p.append(out), frames
}
