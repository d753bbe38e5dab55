package quorum

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"felix.dev/felix/broker/peer"
)

// link is all of this broker's connections to one other server.
type link struct {
	node  *Node
	to    Server
	name  []byte // of to, as raft's messages carry it
	lanes [lanes]lane
	beats beats
}

func newLink(n *Node, to Server) *link {
	l := &link{node: n, to: to, name: []byte(to.String())}
	for i := range l.lanes {
		l.lanes[i] = lane{link: l, kind: laneKind(i), calls: map[uint64]*call{}}
	}
	l.beats = beats{link: l, wake: make(chan struct{}, 1), of: map[uint32]*beat{}}
	return l
}

func (l *link) close() {
	for i := range l.lanes {
		l.lanes[i].close()
	}
}

// dialer opens a connection to a node, and is what of peer.Transport this package uses.
type dialer interface {
	Dial(ctx context.Context, node string, kind peer.Kind, target string) (*peer.Conn, error)
}

// helloVersion is that of the frames and of what they carry.
const helloVersion = 1

// target is what is asked for when a connection is opened: the version, the lane, the
// instance that is meant and the one that asks.
func target(kind laneKind, to, from Server) string {
	return fmt.Sprintf("%d %d %s %s", helloVersion, kind, to.Instance, from.Instance)
}

func parseTarget(s string) (kind laneKind, to, from string, err error) {
	var version int
	if n, err := fmt.Sscanf(s, "%d %d %s %s", &version, &kind, &to, &from); n != 4 || err != nil {
		return 0, "", "", fmt.Errorf("quorum: connection for %q: want version, lane and two instances", s)
	}
	if version != helloVersion || kind < 0 || kind >= lanes || strings.ContainsRune(from, '.') {
		return 0, "", "", fmt.Errorf("quorum: connection for %q: not known to this version", s)
	}
	return kind, to, from, nil
}

// dialLane opens a connection and waits until the other side has taken it.
func (n *Node) dialLane(to Server, kind laneKind) (*wire, error) {
	ctx, cancel := context.WithTimeout(n.ctx, dialTimeout)
	defer cancel()
	conn, err := n.dialer.Dial(ctx, to.Node, peer.KindRaft, target(kind, to, n.cfg.Self))
	if err != nil {
		return nil, fmt.Errorf("%w: dial %s: %w", errConnection, to, err)
	}
	c := newWire(conn)
	if !n.track(conn, nil) {
		c.close()
		return nil, ErrClosed
	}
	_ = conn.SetReadDeadline(time.Now().Add(dialTimeout)) // a connection that refuses it is about to say so
	hello, err := c.read()
	_ = conn.SetReadDeadline(time.Time{})
	if err == nil && (hello.kind != frameHello || len(hello.body) > 0) {
		err = fmt.Errorf("refused: %s", hello.body)
	}
	if err != nil {
		n.untrack(conn)
		c.close()
		return nil, fmt.Errorf("%w: dial %s: %w", errConnection, to, err)
	}
	return c, nil
}

// track has Close end a connection, and wait for its reader if there is something to wait with.
func (n *Node) track(c net.Conn, wait *sync.WaitGroup) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.conns[c] = struct{}{}
	if wait != nil {
		wait.Add(1)
	}
	return true
}

func (n *Node) untrack(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// linkTo is the link to a server, which lasts as long as the node.
func (n *Node) linkTo(to Server) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.links[to]
	if l == nil {
		l = newLink(n, to)
		n.links[to] = l
	}
	return l
}
