package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/udp"
	"felix.dev/felix/broker/wire"
)

// Client is a connection to a broker or to a cluster of them. All methods are safe for concurrent use.
type Client struct {
	cfg    Config // with defaults
	log    *slog.Logger
	tls    *tls.Config
	quic   *quic.Config
	tokens *tokens

	socket    *udp.Conn
	transport *quic.Transport
	pool      *pool
	// life is the client's own lifetime: it ends with Close. It is no caller's context.
	life    context.Context
	die     context.CancelFunc
	running sync.WaitGroup // everything that the client has started

	routes *routes
	shared *sharedPublishers

	mu sync.Mutex
	// Guarded by mu.
	subs       map[*Subscription]struct{}
	publishers map[*Publisher]struct{}
	closed     bool
}

// uniMargin is how many event streams a broker may have open beyond the subscriptions: those that were given up and
// are not yet closed on both sides.
const uniMargin = 64

// Dial connects and authenticates. It tries the addresses in order and fails with a *ConnectError if none can be
// reached, or with an *Error if a broker refuses the token.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	tlsConf, err := newTLS(&cfg)
	if err != nil {
		return nil, err
	}
	socket, report, err := udp.Listen(ctx, "0.0.0.0:0", udp.Options{GRO: true, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	if !report.GSO {
		cfg.Log.Warn("the kernel does not send UDP in trains (GSO); sending costs about twice the CPU")
	}
	c := &Client{
		cfg: cfg, log: cfg.Log, tls: tlsConf, quic: newQUIC(&cfg), tokens: newTokens(&cfg),
		socket: socket, transport: &quic.Transport{Conn: socket},
		routes: newRoutes(), subs: map[*Subscription]struct{}{}, publishers: map[*Publisher]struct{}{},
	}
	c.life, c.die = context.WithCancel(context.Background())
	c.pool = newPool(c)
	c.shared = newSharedPublishers(c)
	if _, err := c.pool.get(ctx, "", false); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// connectionWindow is the receive window with which no number of stalled readers can hold up another one. Bytes that
// were received and not read count against the connection, so it must have room for all streams at once. And it must
// keep a quarter beside that: quic-go grants new credit only when a quarter of the window was read, and without that
// room the stalled streams could use up the window before the others have read so much.
func connectionWindow(cfg *Config) uint64 {
	streams := uint64(cfg.MaxSubscriptionsPerConn+1) * cfg.StreamWindow
	return (streams*4 + 2) / 3
}

// newQUIC fixes the receive windows: initial and maximum are the same.
func newQUIC(cfg *Config) *quic.Config {
	connWindow := connectionWindow(cfg)
	return &quic.Config{
		Versions:                       []quic.Version{quic.Version1},
		HandshakeIdleTimeout:           cfg.DialTimeout,
		MaxIdleTimeout:                 cfg.IdleTimeout,
		KeepAlivePeriod:                cfg.KeepAlive,
		InitialStreamReceiveWindow:     cfg.StreamWindow,
		MaxStreamReceiveWindow:         cfg.StreamWindow,
		InitialConnectionReceiveWindow: connWindow,
		MaxConnectionReceiveWindow:     connWindow,
		MaxIncomingStreams:             -1,
		MaxIncomingUniStreams:          int64(cfg.MaxSubscriptionsPerConn) + uniMargin,
	}
}

// Close ends all subscriptions and publishers, closes the connections and waits for everything that the client has
// started. Publishes without an answer fail; call Publisher.Close first to have them answered. Closing again does
// nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	subs, publishers := c.subs, c.publishers
	c.subs, c.publishers = nil, nil
	c.mu.Unlock()
	if !first {
		c.running.Wait()
		return nil
	}
	var errs []error
	for s := range subs {
		errs = append(errs, s.Close())
	}
	for p := range publishers {
		p.abort()
	}
	c.die()
	c.pool.close()
	c.running.Wait()
	return errors.Join(append(errs, c.transport.Close(), c.socket.Close())...)
}

// adopt and forget keep the list of what Close has to end. adopt returns false if it is too late.
func (c *Client) adopt(s *Subscription) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.subs[s] = struct{}{}
	return true
}

func (c *Client) forget(s *Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subs, s)
}

func (c *Client) adoptPublisher(p *Publisher) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.publishers[p] = struct{}{}
	return true
}

func (c *Client) forgetPublisher(p *Publisher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.publishers, p)
}

// Info describes a connection of the client.
type Info struct {
	// Addr is the broker's address as it was dialled.
	Addr string
	// Flags and Features are what the broker advertised.
	Flags    wire.Flags
	Features wire.Features
	// GSO says that datagrams are sent in trains.
	GSO bool
	// Subscriptions counts the subscriptions that use the connection.
	Subscriptions int
}

// Connections describes the connections that are open.
func (c *Client) Connections() []Info {
	p := c.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	infos := make([]Info, 0, len(p.conns))
	for _, cn := range p.conns {
		infos = append(infos, Info{
			Addr: cn.addr, Flags: cn.flags, Features: cn.features, GSO: cn.q.ConnectionState().GSO, Subscriptions: cn.subs,
		})
	}
	return infos
}

// background runs f as a part of the client, unless that is closed.
func (c *Client) background(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f)
	}
}
