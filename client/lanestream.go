package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/wire"
)

// laneStream is the QUIC stream of a lane.
type laneStream struct {
	*control
	addr string // of the broker
	once sync.Once
	dead chan struct{} // closed by fail
	err  error         // why; set before dead is closed
	// finishing says that the sending side was finished: the end of the other side is no loss then, and what is still
	// on its way must not be taken back.
	finishing atomic.Bool
}

// fail gives the stream up. The first reason counts.
func (st *laneStream) fail(err error) {
	st.once.Do(func() {
		st.err = err
		st.s.CancelRead(0)
		if !st.finishing.Load() {
			st.s.CancelWrite(0)
		}
		close(st.dead)
	})
}

// connect opens a stream and, for an idempotent lane, gets its producer id.
func (l *lane) connect(ctx context.Context) (*laneStream, error) {
	l.p.mu.Lock()
	addr := l.addr
	l.p.mu.Unlock()
	cn, st, err := l.openStream(ctx, addr)
	if isDraining(err) || err != nil && addr != "" && ctx.Err() == nil { // another one may serve
		cn, st, err = l.openStream(ctx, "")
	}
	if err != nil {
		l.use("") // ask any broker the next time
		return nil, err
	}
	if l.p.cfg.Idempotent && !l.hasProducer {
		if err := l.initProducer(ctx, cn, st); err != nil {
			st.drop()
			l.use(l.p.client.instead(cn.addr, err))
			return nil, err
		}
	}
	return &laneStream{control: st, addr: cn.addr, dead: make(chan struct{})}, nil
}

// use chooses the broker for the next stream.
func (l *lane) use(addr string) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.addr = addr
}

// openStream opens a stream at a broker, "" for any.
func (l *lane) openStream(ctx context.Context, addr string) (*conn, *control, error) {
	cn, err := l.p.client.pool.get(ctx, addr, false)
	if err != nil {
		return nil, nil, err
	}
	if err := l.supported(cn); err != nil {
		return nil, nil, err
	}
	st, err := cn.open(ctx)
	return cn, st, err
}

func isDraining(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == wire.CodeDraining
}

// supported says whether the broker takes what this publisher sends.
func (l *lane) supported(cn *conn) error {
	cfg := &l.p.cfg
	l.p.mu.Lock()
	keyed := l.p.routing != nil
	l.p.mu.Unlock()
	switch {
	case !cfg.Unacked && !cn.flags.Has(wire.FlagPublishAcked):
		return &UnsupportedError{What: "binary acked publishes"}
	case keyed && !cn.flags.Has(wire.FlagPublishKeyed):
		return &UnsupportedError{What: "binary keyed publishes"}
	case cfg.Idempotent && (!cn.flags.Has(wire.FlagPublishIdempotent) || !cn.features.Has(wire.FeatureIdempotentProducer)):
		return &UnsupportedError{What: "idempotent publishes"}
	}
	return nil
}

// finishStream ends the sending side and waits for the broker to end the other one, which tells that it has read
// everything: without answers there is no other way to know.
func (l *lane) finishStream(st *laneStream) {
	st.finishing.Store(true)
	if err := st.s.Close(); err != nil {
		st.fail(err)
		return
	}
	timer := time.NewTimer(finishTimeout)
	defer timer.Stop()
	select {
	case <-st.dead:
	case <-timer.C:
		// Only the reading: to reset the other side now could take back what is still on its way.
		st.s.CancelRead(0)
	}
}

// finishTimeout bounds the wait for a broker to end its side of a finished stream.
const finishTimeout = 2 * time.Second
