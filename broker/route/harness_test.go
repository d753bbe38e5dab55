package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// cluster is some brokers in memory.
type cluster struct {
	t     testing.TB
	nodes map[string]*node
}

// node is one broker as far as this package goes.
type node struct {
	c     *cluster
	name  string
	table *fakeTable
	f     *Forwarder
	r     *Receiver

	ctx   context.Context
	kill  context.CancelFunc
	tasks sync.WaitGroup
	dials atomic.Int64

	mu    sync.Mutex
	down  bool
	conns []*faultConn // to it
}

func newCluster(t testing.TB, change func(*Config), names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, nodes: make(map[string]*node)}
	for _, name := range names {
		n := &node{c: c, name: name, table: newFakeTable()}
		n.ctx, n.kill = context.WithCancel(context.Background())
		cfg := Config{Self: name, Table: n.table, Dial: c.dial}
		if change != nil {
			change(&cfg)
		}
		var err error
		if n.f, err = NewForwarder(cfg); err != nil {
			t.Fatal(err)
		}
		if n.r, err = NewReceiver(ReceiverConfig{Table: n.table}); err != nil {
			t.Fatal(err)
		}
		c.nodes[name] = n
	}
	return c
}

// close ends all brokers. A publish that is still with a shard must have been released.
func (c *cluster) close() {
	for _, n := range c.nodes {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := n.f.Close(ctx); err != nil {
			c.t.Error(err)
		}
		cancel()
	}
	for _, n := range c.nodes {
		n.kill()
		n.tasks.Wait()
		if b := n.r.Bytes(); b != 0 {
			c.t.Errorf("%s holds %d bytes of others", n.name, b)
		}
	}
}

var errDown = errors.New("node is down")

func (c *cluster) dial(_ context.Context, to string) (net.Conn, error) {
	n := c.nodes[to]
	if n == nil {
		return nil, fmt.Errorf("%s: no such node", to)
	}
	n.dials.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errDown
	}
	mine, theirs := net.Pipe()
	conn := &faultConn{Conn: mine}
	n.conns = append(n.conns, conn)
	n.tasks.Go(func() { n.r.Serve(n.ctx, theirs) })
	return conn, nil
}

// stop is a broker that is gone, start one that is back.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}

func (n *node) start() {
	n.mu.Lock()
	n.down = false
	n.mu.Unlock()
}

// cut is a broker that nothing reaches any more, though nobody notices.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.cut.Store(true)
	}
}

type faultConn struct {
	net.Conn
	cut atomic.Bool
}

func (c *faultConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *faultConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.cut.Load() {
			return n, err
		}
	}
}

// leads makes a broker the leader of a shard as all brokers see it.
func (c *cluster) leads(k Key, name string, r *replica, generation uint64) {
	for _, n := range c.nodes {
		if n.name == name {
			n.table.set(k, State{Local: r.shard, Generation: generation})
		} else {
			n.table.set(k, State{Node: name, Addr: name + ".example:5000", Generation: generation})
		}
	}
}

// nobody leads.
func (c *cluster) nobody(k Key, reason string) {
	for _, n := range c.nodes {
		n.table.set(k, State{Reason: reason})
	}
}
