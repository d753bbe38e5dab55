package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/udp"
	"felix.dev/felix/broker/wire"
)

// conn is one QUIC connection to one broker.
type conn struct {
	client *Client
	// addr is what was dialled: configured, learned or named by a redirect.
	addr string
	q    *quic.Conn
	// flags and features are what the broker advertised on the connection's first stream. Every stream of the
	// connection gets the same.
	flags    wire.Flags
	features wire.Features
	events   *matcher

	// Guarded by pool.mu: subs counts the subscriptions that use the connection or are about to; retiring says that the
	// broker is shutting down, so that nothing new is begun here.
	subs     int
	retiring bool

	mu sync.Mutex
	// spare is the authenticated stream that the connection began with, until somebody needs a stream. Guarded by mu.
	spare *control
}

// newConn dials one resolved address and authenticates. addr is what it was resolved from.
func (c *Client) newConn(ctx context.Context, addr, ip string, learned bool) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.DialTimeout,
		fmt.Errorf("no answer within %v", c.cfg.DialTimeout))
	defer cancel()
	to, err := udpAddr(ip)
	if err != nil {
		return nil, err
	}
	tlsConf := c.tls.Clone()
	tlsConf.ServerName = serverName(c.cfg.ServerName, addr, learned)
	q, err := c.transport.Dial(ctx, to, tlsConf, c.quic)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	cn := &conn{client: c, addr: addr, q: q, events: newMatcher()}
	st, ok, err := cn.authenticated(ctx)
	if err != nil {
		cn.close("authentication failed")
		return nil, causeOf(ctx, err)
	}
	cn.flags, cn.features = wire.BaseFlags, 0
	if ok != nil {
		cn.flags, cn.features = ok.ServerFlags, ok.ServerFeatures
	}
	cn.spare = st
	return cn, nil
}

// causeOf prefers the reason for which a context ended to the error that this led to.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (cn *conn) alive() bool { return cn.q.Context().Err() == nil }

// why is the reason for which the connection ended.
func (cn *conn) why() error { return context.Cause(cn.q.Context()) }

// close ends the connection. It is safe to call more than once.
func (cn *conn) close(reason string) {
	// The error only repeats that the connection is closed.
	_ = cn.q.CloseWithError(0, reason)
}

// watch ends the connection when everything on it would wait for ever and a new one may do better: when its path no
// longer carries what is sent though the broker is heard, and when the broker has fallen silent and another one is known.
func (cn *conn) watch() {
	var path udp.PathWatch
	var silence silenceWatch
	var looked time.Time
	tick := time.NewTicker(silenceInterval)
	defer tick.Stop()
	for {
		select {
		case <-cn.q.Context().Done():
			return
		case now := <-tick.C:
			stats := cn.q.ConnectionStats()
			if now.Sub(looked) >= udp.PathWatchInterval {
				looked = now
				if path.Dead(now, stats) {
					cn.close("the path to the broker is lost")
				}
			}
			if silence.dead(now, stats, cn.client.cfg.SilenceTimeout) && !cn.client.pool.alone(cn.addr) {
				cn.close("the broker has fallen silent")
			}
		}
	}
}

// acceptEvents hands out the event streams that the broker opens until the connection ends, and then waits for what
// it has started.
func (cn *conn) acceptEvents() {
	ctx := cn.q.Context()
	var admitting sync.WaitGroup
	defer admitting.Wait()
	for {
		s, err := cn.q.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		// Each stream by itself: one that does not begin must not hold up the others.
		admitting.Go(func() { cn.admit(ctx, s) })
	}
}

// admit reads an event stream's hello and brings the stream to its subscription, all within the time of a request.
func (cn *conn) admit(ctx context.Context, s *quic.ReceiveStream) {
	timeout := cn.client.cfg.RequestTimeout
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &eventStream{stream: s, frames: newFrameBuf(s)}
	id, err := readHello(e, time.Now().Add(timeout))
	if err == nil && cn.events.offer(ctx, id, e) {
		return
	}
	e.drop()
	if cn.alive() {
		cn.client.log.Warn("dropped an event stream that no subscription wants",
			"broker", cn.addr, "subscription", id, "error", err)
	}
}

// readHello reads the first frame of an event stream.
func readHello(e *eventStream, deadline time.Time) (uint64, error) {
	if err := e.stream.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	m, err := readMessage(e.frames)
	if err != nil {
		return 0, err
	}
	hello, ok := m.(*wire.EventStreamHello)
	if !ok {
		return 0, &ProtocolError{Where: whereEvent, Err: fmt.Errorf("begins with %q", m.MessageType())}
	}
	return hello.SubscriptionID, e.stream.SetReadDeadline(time.Time{})
}
