package peer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxIdle is how many connections for calls to one address are kept that nobody uses.
const maxIdle = 4

// callPools are the connections for calls, by whom they are to.
type callPools struct {
	mu     sync.Mutex
	of     map[string]*callPool
	closed bool
}

// callPool is there while somebody calls or a connection idles.
type callPool struct {
	to    string
	slots chan struct{} // one for each call that is under way
	users int           // with those that wait for a slot
	idle  []*callConn   // the one that was used last is the last
}

// enter waits until one more call may be under way.
func (p *callPools) enter(ctx context.Context, to string, most int) (*callPool, error) {
	pool, err := p.join(to, most)
	if err != nil {
		return nil, err
	}
	select {
	case pool.slots <- struct{}{}:
		return pool, nil
	case <-ctx.Done():
		p.part(pool)
		return nil, fmt.Errorf("%w: %d calls are under way: %w", ErrUnreachable, most, context.Cause(ctx))
	}
}

func (p *callPools) leave(pool *callPool) {
	<-pool.slots
	p.part(pool)
}

func (p *callPools) join(to string, most int) (*callPool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	pool := p.of[to]
	if pool == nil {
		pool = &callPool{to: to, slots: make(chan struct{}, most)}
		p.of[to] = pool
	}
	pool.users++
	return pool, nil
}

func (p *callPools) part(pool *callPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool.users--
	p.sweep(pool)
}

// sweep forgets a pool with nothing in it. The caller holds mu.
func (p *callPools) sweep(pool *callPool) {
	if pool.users == 0 && len(pool.idle) == 0 {
		delete(p.of, pool.to)
	}
}

// take gives a connection that idled; nil: there is none.
func (p *callPools) take(pool *callPool) *callConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(pool.idle) - 1
	if last < 0 {
		return nil
	}
	c := pool.idle[last]
	p.wake(c)
	return c
}

// put keeps a connection for the next call, for a while.
func (p *callPools) put(c *callConn, idleFor time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-c.read:
		return // it closes itself
	default:
	}
	if p.closed || c.ctx.Err() != nil || len(c.pool.idle) >= maxIdle {
		c.abort()
		return
	}
	c.idle = time.AfterFunc(idleFor, func() {
		if p.drop(c) {
			c.abort()
		}
	})
	c.pool.idle = append(c.pool.idle, c)
}

// suspect ends what idles, after a call that got no answer: the peer's host may be gone,
// and back at another address, without a word to any of its connections.
func (p *callPools) suspect(pool *callPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(pool.idle) > 0 {
		c := pool.idle[0]
		p.wake(c)
		c.abort()
	}
}

// drop takes a connection out of those that idle, and says whether it did.
func (p *callPools) drop(c *callConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wake(c) {
		return false
	}
	p.sweep(c.pool)
	return true
}

// wake is drop for one that holds mu.
func (p *callPools) wake(c *callConn) bool {
	i := slices.Index(c.pool.idle, c)
	if i < 0 {
		return false
	}
	c.pool.idle = slices.Delete(c.pool.idle, i, i+1)
	c.idle.Stop()
	return true
}

// close refuses calls from now on. Connections are the transport's to close.
func (p *callPools) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, pool := range p.of {
		for _, c := range pool.idle {
			c.idle.Stop()
		}
	}
}
