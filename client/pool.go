package client

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"felix.dev/felix/broker/wire"
)

// pool holds the client's connections and opens them.
type pool struct {
	client *Client

	mu sync.Mutex
	// All guarded by mu.
	conns  []*conn             // the preferred first; a dead one leaves soon
	dials  map[string]*dialing // by target, "" for any broker
	book   *addrBook
	closed bool
}

// dialing is an attempt that any number of callers wait for.
type dialing struct {
	done chan struct{}
	err  error // set before done is closed
}

func newPool(c *Client) *pool {
	return &pool{client: c, dials: map[string]*dialing{}, book: newAddrBook(c.cfg.Addrs)}
}

// get returns a connection to the target, or to any broker if it is empty. With slot, it also takes a place for a
// subscription, which must be given back with release.
func (p *pool) get(ctx context.Context, target string, slot bool) (*conn, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		if cn := p.pick(target, slot); cn != nil {
			if slot {
				cn.subs++
			}
			p.mu.Unlock()
			return cn, nil
		}
		d := p.dials[target]
		if d == nil {
			d = p.dial(target)
		}
		p.mu.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
		}
	}
}

// pick finds a connection that fits. The lock is held.
func (p *pool) pick(target string, slot bool) *conn {
	for _, cn := range p.conns {
		if cn.alive() && !cn.retiring && (target == "" || cn.addr == target) &&
			(!slot || cn.subs < p.client.cfg.MaxSubscriptionsPerConn) {
			return cn
		}
	}
	return nil
}

// retire begins nothing new on a connection: its broker is shutting down. The others are asked first from now on.
func (p *pool) retire(cn *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !cn.retiring {
		cn.retiring = true
		p.book.demote(cn.addr)
	}
}

// elsewhere says which broker to ask instead of one that cannot serve for now, "" if no other one is known. Who asks for any
// broker gets the one that could not last, from now on.
func (p *pool) elsewhere(addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.book.demote(addr)
	slices.SortStableFunc(p.conns, func(a, b *conn) int {
		return cmp.Compare(btoi(a.addr == addr), btoi(b.addr == addr))
	})
	return p.book.other(addr)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// alone says that no other broker is known.
func (p *pool) alone(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.other(addr) == ""
}

// release gives a subscription's place back.
func (p *pool) release(cn *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cn.subs--
}

// dial starts an attempt to reach a target. The lock is held. The attempt belongs to the client, not to the caller
// that happened to come first, as others wait for it too.
func (p *pool) dial(target string) *dialing {
	d := &dialing{done: make(chan struct{})}
	p.dials[target] = d
	addrs := []string{target}
	if target == "" {
		addrs = p.book.addrs()
	}
	p.client.running.Go(func() {
		cn, err := p.connect(p.client.life, addrs)
		p.mu.Lock()
		delete(p.dials, target)
		switch {
		case err != nil:
			d.err = err
		case p.closed:
			d.err = ErrClosed
			cn.close("client closed")
		default:
			p.conns = append(p.conns, cn)
			p.client.running.Go(func() { p.attend(cn) })
		}
		p.mu.Unlock()
		close(d.done)
	})
	return d
}

// connect tries addresses, and behind each of them all that it resolves to.
func (p *pool) connect(ctx context.Context, addrs []string) (*conn, error) {
	c := p.client
	discard := func(cn *conn) { cn.close("another broker was faster") }
	cn, err := raceDial(ctx, addrs, c.cfg.DialStagger, func(ctx context.Context, addr string) (*conn, error) {
		p.mu.Lock()
		learned := p.book.learned(addr)
		p.mu.Unlock()
		lookup, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
		defer cancel()
		ips, err := resolve(lookup, addr)
		if err != nil {
			return nil, err
		}
		return raceDial(ctx, ips, c.cfg.DialStagger, func(ctx context.Context, ip string) (*conn, error) {
			return c.newConn(ctx, addr, ip, learned)
		}, finalDialError, discard)
	}, finalDialError, discard)
	if err != nil && ctx.Err() != nil {
		return nil, ErrClosed
	}
	return cn, err
}

// attend serves a connection until it ends.
func (p *pool) attend(cn *conn) {
	c := p.client
	c.log.Debug("connected", "broker", cn.addr, "remote", cn.q.RemoteAddr().String(), "gso", cn.q.ConnectionState().GSO)
	if cn.features.Has(wire.FeatureTopology) {
		c.running.Go(func() { c.followTopology(cn) })
	}
	c.running.Go(cn.watch)
	cn.acceptEvents()
	p.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(o *conn) bool { return o == cn })
	closed := p.closed
	if !closed {
		p.book.demote(cn.addr)
	}
	p.mu.Unlock()
	if !closed {
		c.log.Warn("lost a connection", "broker", cn.addr, "error", cn.why())
	}
}

// learn adds the brokers of a topology.
func (p *pool) learn(brokers []Broker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range brokers {
		p.book.learn(b.Addr)
	}
}

// close ends all connections. Nothing can be opened afterwards.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	conns := slices.Clone(p.conns)
	p.mu.Unlock()
	for _, cn := range conns {
		cn.close("client closed")
	}
}
