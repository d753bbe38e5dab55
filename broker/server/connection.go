package server

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/udp"
)

const (
	// keepShards is how many shards of one connection are remembered before those that
	// hold nothing are forgotten.
	keepShards = 256
	// shardShare is the part of a stream's unanswered publishes that one shard may have:
	// those to others go on if it is stuck.
	shardShare = 4
	// earlyStreams bounds the streams that a connection opens before one of them has
	// authenticated, in multiples of those that are read meanwhile: each costs some
	// kilobytes, and one frame opens thousands.
	earlyStreams = 16
	// crowdedShare is the part of the time to authenticate that a newcomer has while
	// most places are taken, so that strangers cannot keep them from those who would.
	crowdedShare = 10
)

// connection is one client connection and everything on it.
type connection struct {
	srv    *Server
	quic   *quic.Conn
	ctx    context.Context // of quic
	id     uint64
	remote string

	ingress  *budget       // publishes that have arrived, and small ones on their way
	arriving *budget       // large frames on their way
	path     udp.PathWatch // of whoever runs Server.watchPaths

	authenticated chan struct{} // closed when the first stream has
	authOnce      sync.Once
	// unauthenticated has a token for each stream that is read before that, and early
	// counts those that were opened.
	unauthenticated chan struct{}
	early           atomic.Int64

	mu      sync.Mutex
	budgets map[stream.Place]*shardRoom
	subs    int          // subscriptions, those being set up included
	egress  *egress.Conn // nil until the first subscription

	tasks sync.WaitGroup // sessions, and subscriptions until their end was reported
}

func newConnection(s *Server, qc *quic.Conn) *connection {
	return &connection{
		srv: s, quic: qc, ctx: qc.Context(), id: s.connections.Add(1), remote: qc.RemoteAddr().String(),
		ingress:         newBudget(s.cfg.ConnectionIngressBytes),
		arriving:        newBudget(s.cfg.ConnectionIngressBytes),
		authenticated:   make(chan struct{}),
		unauthenticated: make(chan struct{}, s.cfg.MaxUnauthenticated),
		budgets:         make(map[stream.Place]*shardRoom),
	}
}

// run serves the connection until it is gone and nothing of it is left.
func (c *connection) run() {
	patience := c.srv.cfg.AuthTimeout
	if c.srv.gate.crowded() {
		patience /= crowdedShare
	}
	deadline := time.AfterFunc(patience, c.authTimeout)
	defer deadline.Stop()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		c.accept(func() (func(), error) {
			str, err := c.quic.AcceptUniStream(c.ctx)
			if err != nil {
				return nil, err
			}
			return func() { newSession(c, str, nil, uint64(str.StreamID())).run() }, nil
		})
	})
	c.accept(func() (func(), error) {
		str, err := c.quic.AcceptStream(c.ctx)
		if err != nil {
			return nil, err
		}
		return func() { newSession(c, str, str, uint64(str.StreamID())).run() }, nil
	})
	accepting.Wait()
	c.tasks.Wait()
	c.srv.windows.forget(c.quic)
}

// accept runs a session for each stream that next gives. Of an unauthenticated
// connection only so many are read at a time; the next ones wait, unread.
func (c *connection) accept(next func() (session func(), err error)) {
	for {
		run, err := next()
		if err != nil {
			return
		}
		select {
		case <-c.authenticated:
		default:
			if c.early.Add(1) > int64(earlyStreams*c.srv.cfg.MaxUnauthenticated) {
				c.srv.m.Sessions.Rejected.With(metrics.RejectProtocol).Inc()
				c.close(closeUnauthenticated, "too many streams before authentication")
				return
			}
		}
		c.tasks.Go(func() {
			leave, ok := c.enter()
			if !ok {
				return
			}
			defer leave()
			run()
		})
	}
}

// enter waits until one more stream may be read; leave ends that. It is false if the
// connection is gone.
func (c *connection) enter() (leave func(), ok bool) {
	early := false
	select {
	case <-c.authenticated:
	default:
		select {
		case c.unauthenticated <- struct{}{}:
			early = true
		case <-c.authenticated:
		case <-c.ctx.Done():
			return nil, false
		}
	}
	c.srv.streamsOpen.Add(1)
	return func() {
		c.srv.streamsOpen.Add(-1)
		if early {
			<-c.unauthenticated
		}
	}, true
}

func (c *connection) authTimeout() {
	select {
	case <-c.authenticated:
	default:
		c.srv.m.Sessions.Rejected.With(metrics.RejectAuthTimeout).Inc()
		c.close(closeAuthTimeout, "authentication timeout")
	}
}

// authenticate lifts what an unauthenticated connection is held to.
func (c *connection) authenticate() {
	c.authOnce.Do(func() {
		c.srv.windows.open(c.quic)
		close(c.authenticated)
	})
}

func (c *connection) close(code quic.ApplicationErrorCode, text string) {
	if err := c.quic.CloseWithError(code, text); err != nil {
		c.srv.log.Debug("connection was gone already", slog.String("remote", c.remote), slog.Any("error", err))
	}
}

// shardRoom bounds what is under way to one shard.
type shardRoom struct {
	own *budget // of the connection
	all *budget // of all of them
}

// shardRoom is that for a shard.
func (c *connection) shardRoom(p stream.Place) *shardRoom {
	all := c.srv.shards.budget(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.budgets[p]; b != nil {
		return b
	}
	if len(c.budgets) >= keepShards {
		for k, b := range c.budgets {
			if b.own.idle() {
				delete(c.budgets, k)
			}
		}
	}
	b := &shardRoom{own: newShardBudget(c.srv.cfg.ShardIngressBytes, c.srv.cfg.MaxUnanswered/shardShare), all: all}
	c.budgets[p] = b
	return b
}

// addSubscription takes one of the connection's subscriptions; the place is given
// back by removeSubscription. The engine's handle comes with it.
func (c *connection) addSubscription() (*egress.Conn, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs >= c.srv.cfg.MaxSubscriptions {
		return nil, false
	}
	c.subs++
	if c.egress == nil {
		c.egress = c.srv.cfg.Egress.NewConn(c.id)
	}
	return c.egress, true
}

func (c *connection) removeSubscription() {
	c.mu.Lock()
	c.subs--
	c.mu.Unlock()
}

func (c *connection) subscriptionCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subs
}

// quiet waits until QUIC sends nothing any more, or for ctx. There is no notice of
// what was delivered, so that this is the sign that all it was given is out.
func (c *connection) quiet(ctx context.Context) {
	tick := time.NewTicker(quietFor)
	defer tick.Stop()
	for last := c.quic.ConnectionStats().BytesSent; ; {
		select {
		case <-c.ctx.Done():
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := c.quic.ConnectionStats().BytesSent
		if now == last {
			return
		}
		last = now
	}
}

// principalLabel is how a subscription's owner is named to people.
func principalLabel(tenant, subject string) string {
	return strings.Join([]string{tenant, subject}, "/")
}
