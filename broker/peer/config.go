package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config says who a broker is among its peers. Zero values are the defaults in brackets.
type Config struct {
	// NodeID names this broker. Required, at most 128 bytes.
	NodeID string
	// Cluster is the id of the cluster that the broker belongs to, asked at each
	// connection, "" while it belongs to none: then nothing is compared (nil: always "").
	Cluster func() string
	// Listen is the TCP address to listen on. Required.
	Listen string

	// Certificate and CAs are asked at each handshake: what they give may change.
	// pki.Files has both. Required.
	Certificate func() (*tls.Certificate, error)
	CAs         func() *x509.CertPool

	// Resolve gives the address of a node at present, a host name or an IP address
	// with a port. It is asked at each Dial, and a host name is looked up each time.
	// Required for Dial and Call; nil: no node has an address.
	Resolve func(node string) (addr string, ok bool)
	// DialNet makes the connection below TLS (nil: TCP). Tests put faults there.
	DialNet func(ctx context.Context, addr string) (net.Conn, error)

	// HandshakeTimeout bounds all that comes before a connection can be used: dialing,
	// TLS, the hello and its answer, on both sides [5 s].
	HandshakeTimeout time.Duration
	// DeadAfter ends a connection, in either direction, whose other side takes no bytes for
	// so long: its host is gone, or its process hangs (Linux only) [10 s].
	DeadAfter time.Duration
	// MaxHandshakes bounds the incoming connections that have not said who they are.
	// One more closes the one that has taken longest [128].
	MaxHandshakes int
	// MaxConns and MaxConnsPerPeer bound incoming connections after their hello [4096, 512].
	MaxConns, MaxConnsPerPeer int

	// MaxCallBytes bounds the body of a call and of its answer [4 MiB].
	MaxCallBytes int
	// MaxCallsPerPeer bounds the calls to one address that are under way; one more
	// waits [64].
	MaxCallsPerPeer int
	// CallTimeout bounds a call whose context has no deadline [10 s].
	CallTimeout time.Duration
	// IdleTimeout is how long a connection for calls is kept that nobody uses [1 min].
	IdleTimeout time.Duration

	// Log (nil: nothing is logged).
	Log *slog.Logger
}

const (
	// maxName bounds the names of nodes and clusters, maxTarget that of a target, in
	// bytes: a hello is read before anything else is known of who sends it.
	maxName   = 128
	maxTarget = 1024
)

// Validate reports every problem.
func (c *Config) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("peer: "+format, args...)) }
	if c.NodeID == "" || len(c.NodeID) > maxName {
		fail("node id %q: want 1 to %d bytes", c.NodeID, maxName)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fail("listen: %w", err)
	}
	if c.Certificate == nil || c.CAs == nil {
		fail("certificate and CAs are required")
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"handshake timeout", int64(c.HandshakeTimeout)},
		{"dead after", int64(c.DeadAfter)},
		{"handshakes", int64(c.MaxHandshakes)},
		{"connections", int64(c.MaxConns)},
		{"connections per peer", int64(c.MaxConnsPerPeer)},
		{"call bytes", int64(c.MaxCallBytes)},
		{"calls per peer", int64(c.MaxCallsPerPeer)},
		{"call timeout", int64(c.CallTimeout)},
		{"idle timeout", int64(c.IdleTimeout)},
	} {
		if n.value < 0 {
			fail("%s: %d is negative", n.name, n.value)
		}
	}
	if c.MaxCallBytes > maxFrame {
		fail("call bytes: %d is above %d", c.MaxCallBytes, maxFrame)
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	def := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	defInt := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	def(&c.HandshakeTimeout, 5*time.Second)
	def(&c.DeadAfter, 10*time.Second)
	def(&c.CallTimeout, 10*time.Second)
	def(&c.IdleTimeout, time.Minute)
	defInt(&c.MaxHandshakes, 128)
	defInt(&c.MaxConns, 4096)
	defInt(&c.MaxConnsPerPeer, 512)
	defInt(&c.MaxCallBytes, 4<<20)
	defInt(&c.MaxCallsPerPeer, 64)
	if c.Cluster == nil {
		c.Cluster = func() string { return "" }
	}
	if c.Resolve == nil {
		c.Resolve = func(string) (string, bool) { return "", false }
	}
	if c.DialNet == nil {
		d := net.Dialer{KeepAliveConfig: keepAlive, Control: deadAfter(c.DeadAfter)}
		c.DialNet = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
