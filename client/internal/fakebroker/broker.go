package fakebroker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// Token is the only one that is accepted, unless Hooks.Auth says otherwise.
const Token = "fake-token"

// Hooks are a test's script. A nil hook leaves the default in place.
type Hooks struct {
	// Auth returns the answer to an auth; nil: the default.
	Auth func(m *wire.Auth) wire.Message
	// Request returns the answer to a request other than publish and subscribe; nil: the default.
	Request func(m wire.Message) wire.Message
	// Subscribe returns the answer to a subscribe instead of accepting it; nil: the default.
	Subscribe func(m *wire.Subscribe) wire.Message
	// Publish takes a publish over. false: it is accepted and answered as usual.
	Publish func(p *Publish) bool
	// Events writes an event stream, from behind its hello to its end. false: the log is written as usual.
	Events func(s *Sub) bool
	// Order may delay an event stream or its hello until the answer to the subscribe is out, or never send it.
	Order func(s *Sub) (hello bool)
}

// Config shapes a Broker.
type Config struct {
	// Addr to listen on; empty: a free port of 127.0.0.1.
	Addr string
	// Shards of every stream; 0: 1. Routing of the keys.
	Shards  uint32
	Routing wire.Routing
	// Flags and Features to advertise; 0: those of a stand-alone broker with idempotent producers.
	Flags    wire.Flags
	Features wire.Features
	Hooks    Hooks
	// Identity to present; nil: a new one. A broker that is to be restarted keeps its own.
	Identity *Identity
	// Store holds the streams; nil: a new one. A broker that is to be restarted may keep it.
	Store *Store
}

// Identity is a certificate for localhost and 127.0.0.1 that signs itself.
type Identity struct {
	cert  tls.Certificate
	Roots *x509.CertPool
}

// NewIdentity makes an Identity.
func NewIdentity() (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &Identity{cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, Roots: roots}, nil
}

// Broker is a running fake broker.
type Broker struct {
	cfg       Config
	socket    *net.UDPConn
	transport *quic.Transport
	listener  *quic.Listener
	stop      context.CancelFunc
	ctx       context.Context
	running   sync.WaitGroup
	nextSub   atomic.Uint64

	// Counters for tests.
	Conns   atomic.Int64 // accepted
	Auths   atomic.Int64 // auth messages
	Batches atomic.Int64 // publish frames

	mu    sync.Mutex
	conns map[*quic.Conn]struct{} // guarded by mu
	subs  map[*Sub]struct{}       // guarded by mu
}

// Start starts a broker.
func Start(cfg Config) (*Broker, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if cfg.Flags == 0 {
		cfg.Flags = wire.StandaloneFlags | wire.IdempotentFlags
	}
	if cfg.Features == 0 {
		cfg.Features = wire.StandaloneFeatures | wire.IdempotentFeatures
	}
	if cfg.Store == nil {
		cfg.Store = NewStore()
	}
	if cfg.Identity == nil {
		identity, err := NewIdentity()
		if err != nil {
			return nil, err
		}
		cfg.Identity = identity
	}
	addr, err := net.ResolveUDPAddr("udp4", cfg.Addr)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp4", addr)
	if err != nil {
		return nil, err
	}
	b := &Broker{
		cfg: cfg, socket: socket, transport: &quic.Transport{Conn: socket},
		conns: map[*quic.Conn]struct{}{}, subs: map[*Sub]struct{}{},
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.listener, err = b.transport.Listen(
		&tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"felix/1"},
			Certificates: []tls.Certificate{cfg.Identity.cert},
		},
		&quic.Config{
			MaxIdleTimeout: 10 * time.Second, MaxIncomingStreams: 2000, MaxIncomingUniStreams: 16,
			InitialStreamReceiveWindow: 16 << 20, MaxStreamReceiveWindow: 16 << 20,
			InitialConnectionReceiveWindow: 32 << 20, MaxConnectionReceiveWindow: 32 << 20,
		})
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	b.running.Go(b.accept)
	return b, nil
}

// Addr is where the broker listens.
func (b *Broker) Addr() string { return b.socket.LocalAddr().String() }

// Port is the port that the broker listens on.
func (b *Broker) Port() int {
	addr, ok := b.socket.LocalAddr().(*net.UDPAddr)
	if !ok {
		return 0
	}
	return addr.Port
}

// Identity is what the broker presents.
func (b *Broker) Identity() *Identity { return b.cfg.Identity }

// Store is where the streams are.
func (b *Broker) Store() *Store { return b.cfg.Store }

// Close stops the broker: clients are told.
func (b *Broker) Close() error {
	b.stop()
	b.mu.Lock()
	for c := range b.conns {
		_ = c.CloseWithError(0, "shutting down") // it is closed either way
	}
	b.mu.Unlock()
	err := errors.Join(b.listener.Close(), b.transport.Close(), b.socket.Close())
	b.cfg.Store.wake()
	b.running.Wait()
	return err
}

// Kill stops the broker without a word to anybody, as a crash does.
func (b *Broker) Kill() {
	_ = b.socket.Close() // nothing can be sent from now on
	_ = b.Close()
}

// Subs lists the subscriptions that are live.
func (b *Broker) Subs() []*Sub {
	b.mu.Lock()
	defer b.mu.Unlock()
	subs := make([]*Sub, 0, len(b.subs))
	for s := range b.subs {
		subs = append(subs, s)
	}
	return subs
}

func (b *Broker) accept() {
	for {
		c, err := b.listener.Accept(b.ctx)
		if err != nil {
			return
		}
		b.Conns.Add(1)
		b.mu.Lock()
		b.conns[c] = struct{}{}
		b.mu.Unlock()
		b.running.Go(func() {
			b.serve(c)
			b.mu.Lock()
			delete(b.conns, c)
			b.mu.Unlock()
		})
	}
}

func (b *Broker) serve(c *quic.Conn) {
	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		s, err := c.AcceptStream(b.ctx)
		if err != nil {
			return
		}
		streams.Go(func() {
			(&session{b: b, conn: c, s: s, streams: &streams}).serve()
		})
	}
}
