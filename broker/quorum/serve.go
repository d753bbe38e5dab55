package quorum

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/peer"
)

// inbound is a connection that another server opened.
type inbound struct {
	*wire
	from Server
	name []byte      // of from, as raft's messages carry it
	over atomic.Bool // it has ended: nobody waits for answers
}

// serve reads one connection until it ends. It is the peer transport's handler.
func (n *Node) serve(ctx context.Context, conn *peer.Conn) {
	n.accept(ctx, conn, conn.Node, conn.Target)
}

func (n *Node) accept(ctx context.Context, conn net.Conn, node, target string) {
	defer func() { _ = conn.Close() }() // it is read to its end, or useless
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if !n.track(conn, &n.serving) {
		return
	}
	defer n.serving.Done()
	defer n.untrack(conn)

	kind, to, instance, err := parseTarget(target)
	from := Server{Node: node, Instance: instance}
	c := &inbound{wire: newWire(conn), from: from, name: []byte(from.String())}
	defer c.over.Store(true)
	var refusal []byte
	switch {
	case err != nil:
		refusal = []byte(err.Error())
	case to != n.cfg.Self.Instance:
		refusal = []byte(fmt.Sprintf("this is %s, not instance %s", n.cfg.Self, to))
	}
	if err := c.write(frameHello, 0, 0, refusal); err != nil || refusal != nil {
		return
	}
	n.heard.opened(from, kind, c)
	defer n.heard.closed(from, kind, c)
	for {
		f, err := c.read()
		if err != nil {
			return
		}
		if f.kind == frameHeartbeats {
			n.heartbeats(c, f)
		} else if g := n.Group(f.group); g == nil {
			c.refuse(f, errAbsent)
		} else if err := g.inbox.put(c, f); err != nil {
			c.refuse(f, err)
		}
	}
}

func (c *inbound) refuse(f frame, err error) { c.answer(f, frameError, []byte(err.Error())) }

// answer writes what a request gets. When that fails the connection is closed, and
// its reader ends.
func (c *inbound) answer(f frame, kind frameKind, body []byte) {
	if err := c.write(kind, f.group, f.id, body); err != nil {
		c.close()
	}
}

// maxBeats bounds the groups of one frame of heartbeats.
const maxBeats = 4096

// heartbeats answers a frame of them. Those that change nothing are answered here; one
// that brings a new term has raft write it to disk, so it gets a goroutine, and not for
// long the patience of the others.
func (n *Node) heartbeats(c *inbound, f frame) {
	d := decoder{b: f.body}
	answer := make([]byte, 0, 2*len(f.body))
	var slow []slowBeat
	for beats := 0; len(d.b) > 0; beats++ {
		id, term := d.uint(), d.uint()
		if d.bad || id > maxGroup || beats > maxBeats {
			c.close()
			return
		}
		g := n.Group(uint32(id))
		switch {
		case g == nil:
			answer = appendUints(answer, id, term, 0, 0, flagAbsent)
		case g.raft.State() == raft.Follower && g.raft.CurrentTerm() == term:
			answer = appendBeat(answer, id, term, g.heartbeat(c, term))
		default:
			slow = append(slow, slowBeat{g: g, term: term})
		}
	}
	if len(slow) == 0 {
		c.answer(f, frameOK, answer)
		return
	}
	n.run(func() { c.answer(f, frameOK, n.slowBeats(c, answer, slow)) })
}

type slowBeat struct {
	g    *Group
	term uint64
}

func (n *Node) slowBeats(c *inbound, answer []byte, slow []slowBeat) []byte {
	var mu sync.Mutex
	said := make([]*raft.AppendEntriesResponse, len(slow))
	answered := make(chan struct{}, len(slow))
	waiting := 0
	for i, s := range slow {
		if !s.g.beating.CompareAndSwap(false, true) {
			continue // the one before it has not come back
		}
		waiting++
		if !n.run(func() {
			r := s.g.heartbeat(c, s.term)
			s.g.beating.Store(false)
			mu.Lock()
			said[i] = r
			mu.Unlock()
			answered <- struct{}{}
		}) {
			s.g.beating.Store(false)
			answered <- struct{}{}
		}
	}
	timer := time.NewTimer(n.cfg.Timings.Lease / 4)
	defer timer.Stop()
	for ; waiting > 0; waiting-- {
		select {
		case <-answered:
			continue
		case <-timer.C:
		}
		break
	}
	mu.Lock()
	defer mu.Unlock()
	for i, s := range slow {
		answer = appendBeat(answer, uint64(s.g.id), s.term, said[i])
	}
	return answer
}

// appendBeat encodes an answer: the group, the term of the question, and raft's word.
func appendBeat(b []byte, group, asked uint64, r *raft.AppendEntriesResponse) []byte {
	if r == nil {
		return appendUints(b, group, asked, 0, 0, flagLater)
	}
	return appendUints(b, group, asked, r.Term, r.LastLog, bit(r.Success, flagSuccess)|bit(r.NoRetryBackoff, flagNoBackoff))
}

// heartbeat gives raft a leader's heartbeat and returns what it says, nil if nothing.
func (g *Group) heartbeat(c *inbound, term uint64) *raft.AppendEntriesResponse {
	answer := make(chan raft.RPCResponse, 1)
	g.trans.beat(raft.RPC{
		Command:  &raft.AppendEntriesRequest{RPCHeader: header(c.name), Term: term},
		RespChan: answer,
	})
	select {
	case a := <-answer:
		if r, ok := a.Response.(*raft.AppendEntriesResponse); ok && a.Error == nil {
			return r
		}
	default: // it is shutting down
	}
	return nil
}
