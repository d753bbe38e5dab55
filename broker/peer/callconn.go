package peer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// callConn is a connection for calls, one at a time. A goroutine reads from it at all
// times, so that one whose other side is gone is not found out by a call.
type callConn struct {
	*Conn
	pool    *callPool
	most    int
	waiting atomic.Bool
	answers chan result   // of the call that waits; never full
	idle    *time.Timer   // closes it; nil unless it idles. Guarded by callPools.mu
	read    chan struct{} // closed when nothing will be read anymore
	err     error         // why; set before
}

// newCallConn begins to read from a connection; nil: the transport is closed.
func (t *Transport) newCallConn(pool *callPool, conn *Conn) *callConn {
	c := &callConn{Conn: conn, pool: pool, most: t.cfg.MaxCallBytes, answers: make(chan result, 1), read: make(chan struct{})}
	ok := t.start(func() {
		c.err = c.readAnswers()
		close(c.read)
		t.calls.drop(c)
		_ = c.Close() // it is of no use anymore
	})
	if !ok {
		return nil
	}
	return c
}

// readAnswers returns when nothing can be expected of the connection anymore.
func (c *callConn) readAnswers() error {
	for {
		r, err := readResult(c, c.most)
		if err != nil {
			return err
		}
		if !c.waiting.CompareAndSwap(true, false) {
			return fmt.Errorf("%w: an answer that nothing was asked for", ErrProtocol)
		}
		c.answers <- r
	}
}

// exchange sends a call and waits for its answer. Unless it was sent, it was not
// carried out. After an error the connection is closed.
func (c *callConn) exchange(ctx context.Context, r *request) (answer *result, sent bool, err error) {
	c.waiting.Store(true)
	stop := context.AfterFunc(ctx, c.abort)
	defer func() {
		if !stop() && err == nil {
			// The answer came as time ran out: it is good, the connection is not.
			c.abort()
		}
		if err != nil {
			_ = c.Close() // err says why
		}
	}()
	if _, err := c.Write(r.bytes()); err != nil {
		return nil, false, because(ctx, err)
	}
	select {
	case a := <-c.answers:
		return &a, true, nil
	case <-c.read:
	}
	select {
	case a := <-c.answers: // it closed right after
		return &a, true, nil
	default:
		return nil, true, because(ctx, c.err)
	}
}

// because gives the context's error if it had to do with it.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
