package faultnet

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// Dial is for peer.Config.DialNet. An address that no node ever had is dialed as if
// its node were called by it.
func (n *Node) Dial(ctx context.Context, addr string) (net.Conn, error) {
	l := n.network.linkTo(n.name, addr)
	if err := n.network.wayThere(ctx, l, addr); err != nil {
		return nil, err
	}
	var d net.Dialer
	there, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	here, middle, err := pair(ctx)
	if err != nil {
		return nil, errors.Join(err, there.Close())
	}
	if !n.network.relay(l, middle, there) {
		return nil, errors.Join(dialError(addr, net.ErrClosed), here.Close(), middle.Close(), there.Close())
	}
	return here, nil
}

func (n *Network) linkTo(from, addr string) link {
	n.mu.Lock()
	defer n.mu.Unlock()
	if node, ok := n.nodes[addr]; ok {
		return link{from, node}
	}
	return link{from, addr}
}

// wayThere waits while a link is cut, for either way there and back.
func (n *Network) wayThere(ctx context.Context, l link, addr string) error {
	for {
		n.mu.Lock()
		there, back, gone, closed, changed := n.ruleOf(l), n.ruleOf(l.back()), n.gone[l.to], n.closed, n.changed
		n.mu.Unlock()
		var arrived <-chan time.Time
		switch {
		case closed:
			return dialError(addr, net.ErrClosed)
		case there.cut || back.cut:
		case gone:
			return dialError(addr, syscall.ECONNREFUSED)
		case there.delay+back.delay == 0:
			return nil
		default:
			arrived = time.After(there.delay + back.delay)
		}
		select {
		case <-arrived:
			return nil
		case <-changed:
		case <-ctx.Done():
			return dialError(addr, context.Cause(ctx))
		}
	}
}

// pair is a connection with itself.
func pair(ctx context.Context) (here, middle net.Conn, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close() //nolint:errcheck // nobody else connects to it
	var d net.Dialer
	here, err = d.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	// It waits in the listener's queue already.
	for {
		if middle, err = l.Accept(); err != nil {
			return nil, nil, errors.Join(err, here.Close())
		}
		if middle.RemoteAddr().String() == here.LocalAddr().String() {
			return here, middle, nil
		}
		_ = middle.Close() // somebody else's
	}
}

// relay is a connection: what comes from near goes far, and the other way round.
type relay struct {
	link      link
	near, far net.Conn
	stranded  bool // guarded by Network.mu
	done      chan struct{}
	once      sync.Once
}

func (r *relay) close() {
	r.once.Do(func() {
		close(r.done)
		_ = r.near.Close() // both ends get to know
		_ = r.far.Close()
	})
}

// relay begins to pass on what comes; false: the network is closed.
func (n *Network) relay(l link, near, far net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	r := &relay{link: l, near: near, far: far, done: make(chan struct{})}
	n.relays[r] = struct{}{}
	count := n.dialed[l]
	n.dialed[l]++
	there := n.direction(r, l, near, far, count)
	back := n.direction(r, l.back(), far, near, count)
	var ends sync.WaitGroup
	for _, f := range []func(){there.read, there.write, back.read, back.write} {
		ends.Go(f)
	}
	n.running.Go(func() {
		ends.Wait()
		r.close()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.relays, r)
	})
	return true
}

// direction is one half of a relay.
func (n *Network) direction(r *relay, l link, from, to net.Conn, count uint64) *direction {
	h := fnv.New64a()
	_, _ = h.Write([]byte(l.from + "\x00" + l.to)) // never fails
	return &direction{
		network: n, relay: r, link: l, from: from, to: to,
		chunks: make(chan chunk, queued),
		random: rand.New(rand.NewPCG(n.seed, h.Sum64()+count)), //nolint:gosec // it is to be predictable
	}
}
