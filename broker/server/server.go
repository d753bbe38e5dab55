package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/wire"
)

// serverFeatures are what every broker serves: a client may meet one of a cluster next.
const serverFeatures = wire.ClusterFeatures | wire.IdempotentFeatures

const (
	closeShutdown    = 0
	closeAuthTimeout = 1
	// closeNotFelix is for a peer that speaks something else.
	closeNotFelix = 2
	// closePathLost is for a peer that no longer gets what it is sent.
	closePathLost = 3
	// closeUnauthenticated is for a peer that asks for much before it authenticates.
	closeUnauthenticated = 4

	drainPoll = 5 * time.Millisecond
	// answersEnd is how long publishers may take to read the last answers, and
	// readersEnd how long readers may take to be sent what is committed, before their
	// connections are closed.
	answersEnd = 2 * time.Second
	readersEnd = 5 * time.Second
	// quietFor is how long nothing was sent when everything counts as sent, and
	// flushTimeout how long the end of a connection waits for that.
	quietFor     = 30 * time.Millisecond
	flushTimeout = 500 * time.Millisecond
)

// Server is a listening broker. Its methods may be called from any goroutine.
type Server struct {
	cfg Config
	log *slog.Logger
	m   *metrics.Metrics

	gate    *gate
	windows *windows
	socket  *socket

	ingress     *budget
	shards      *shardBudgets
	owed        atomic.Int64 // answers to publishes that QUIC does not have yet
	streamsOpen atomic.Int64
	connections atomic.Uint64 // ids
	subIDs      atomic.Uint64

	draining atomic.Bool

	mu    sync.Mutex
	conns map[*connection]struct{}

	tasks   sync.WaitGroup // the accept loop, the connections and who watches them
	closing chan struct{}  // closed by Close
	once    sync.Once

	failed  chan struct{} // closed when no more connections are accepted, unasked
	failure error         // why; set before failed is closed
	network Network
}

// Start opens the socket and serves until Close. ctx is for opening only.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Log, m: cfg.Metrics,
		windows: newWindows(uint64(cfg.WindowBudget)),
		ingress: newBudget(cfg.IngressBytes),
		shards:  newShardBudgets(max(cfg.IngressBytes/2, cfg.ShardIngressBytes)),
		conns:   make(map[*connection]struct{}),
		failed:  make(chan struct{}),
		closing: make(chan struct{}),
	}
	if s.m == nil {
		m, err := metrics.New(nil)
		if err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
		s.m = m
	}
	s.gate = newGate(cfg.MaxConnections, cfg.MaxConnectionsPerAddress, s.m.Sessions.Rejected)
	var err error
	if s.socket, err = listen(ctx, &s.cfg, s.gate, s.windows, s.m); err != nil {
		return nil, err
	}
	s.network = s.socket.network
	s.tasks.Go(s.accept)
	s.tasks.Go(s.watchPaths)
	return s, nil
}

// flags are what this broker understands and sends.
func (s *Server) flags() wire.Flags {
	if s.cfg.Cluster {
		return wire.ClusterFlags | wire.IdempotentFlags
	}
	return wire.StandaloneFlags | wire.IdempotentFlags
}

// Addr is the address that clients connect to.
func (s *Server) Addr() net.Addr { return s.socket.listener.Addr() }

// Network is what the kernel granted the socket.
type Network struct{ GSO, GRO bool }

// Network says what the kernel granted.
func (s *Server) Network() Network { return s.network }

// Failed is closed if the server stops accepting connections on its own; Err then
// says why.
func (s *Server) Failed() <-chan struct{} { return s.failed }

// Err is why Failed is closed, nil before.
func (s *Server) Err() error {
	select {
	case <-s.failed:
		return s.failure
	default:
		return nil
	}
}

func (s *Server) accept() {
	for {
		qc, err := s.socket.listener.Accept(context.Background())
		if err != nil {
			if !s.draining.Load() {
				s.failure = fmt.Errorf("server: no more connections are accepted: %w", err)
				close(s.failed)
			}
			return
		}
		s.gate.completed(qc.Context())
		s.m.Sessions.Accepted.Inc()
		c := newConnection(s, qc)
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		if s.draining.Load() { // looked at after it can be found: Close sets it before it looks
			c.close(closeShutdown, "broker shutting down")
		}
		s.tasks.Go(func() {
			c.run()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// Stats are what the server holds now.
type Stats struct {
	Connections  int
	Streams      int   // QUIC streams, in either direction
	IngressBytes int64 // of publishes not committed yet
}

// Stats reads the state for metrics.
func (s *Server) Stats() Stats {
	return Stats{
		Connections:  s.gate.connections(),
		Streams:      int(s.streamsOpen.Load()),
		IngressBytes: s.ingress.held(),
	}
}

// Drain begins the shutdown: no more connections, streams and publishes, each
// refused with "draining", and no more subscriptions. It returns when every publish
// taken before is committed or refused, or with ctx, and its answer sent, for which it
// does not wait long: a client need not read it. Subscriptions go on until their
// shards are closed.
func (s *Server) Drain(ctx context.Context) error {
	if !s.draining.Swap(true) {
		_ = s.socket.listener.Close() // it has no error
	}
	if !poll(ctx, s.ingress.idle) {
		return fmt.Errorf("server: %d publishes left unanswered: %w", s.owed.Load(), context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, answersEnd)
	defer cancel()
	if !poll(ctx, func() bool { return s.owed.Load() == 0 }) {
		s.log.Warn("answers to publishes were left unread by their clients", slog.Int64("answers", s.owed.Load()))
	}
	return nil
}

// poll waits until done says so; false: ctx was over first.
func poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// Close closes all connections with code 0, once what was written to them has gone
// out, and the socket, and waits for everything the server started. ctx bounds the
// wait for what is still to be sent, and for subscriptions to end by themselves.
// Publishes that are still with their shards must be finished, by closing these,
// before Close.
func (s *Server) Close(ctx context.Context) {
	s.once.Do(func() {
		s.draining.Store(true)
		_ = s.socket.listener.Close() // it has no error
		conns := s.open()
		readers, cancel := context.WithTimeout(ctx, readersEnd)
		s.awaitSubscriptions(readers, conns)
		cancel()
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Go(func() {
				flush, cancel := context.WithTimeout(ctx, flushTimeout)
				defer cancel()
				c.quiet(flush) // closing a connection drops what is not sent
				c.close(closeShutdown, "broker shutting down")
			})
		}
		wg.Wait()
		for _, c := range s.open() { // completed while the others were closed
			c.close(closeShutdown, "broker shutting down")
		}
		close(s.closing)
		s.tasks.Wait()
		s.socket.close()
	})
}

func (s *Server) open() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*connection, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

func (s *Server) awaitSubscriptions(ctx context.Context, conns []*connection) {
	for _, c := range conns {
		if !poll(ctx, func() bool { return c.subscriptionCount() == 0 }) {
			return
		}
	}
}
