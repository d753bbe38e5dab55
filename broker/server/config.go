package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// Authenticator judges tokens. An error that is no *auth.Error and not the
// context's means that nothing could be decided.
type Authenticator interface {
	Verify(ctx context.Context, tenant, token string) (*auth.Principal, error)
}

// Directory knows the streams that this broker serves. Its methods are called from
// any goroutine and do not block.
type Directory interface {
	// Stream finds a stream. The error is a *stream.Error: not_found, or why the
	// stream cannot be served.
	Stream(name stream.Name) (*stream.Stream, error)
	// Generation changes whenever an earlier answer of Stream, for any name, may no
	// longer be right.
	Generation() uint64
	// Brokers are those of the cluster that clients can reach now, this one included if
	// it is; nil outside of a cluster.
	Brokers() []wire.Broker
}

// Config configures a Server. Zero values are the defaults in brackets; a limit
// cannot be switched off.
type Config struct {
	// Addr is the UDP address to listen on (":5000").
	Addr string
	// Certificate chooses the server's certificate at each handshake. Required.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientAuth says whether clients present a certificate (ClientAuthNone), and
	// ClientCAs who may have signed it, asked at each handshake. Required with another
	// ClientAuth than that.
	ClientAuth ClientAuth
	ClientCAs  func() *x509.CertPool
	// RequireALPN refuses clients that offer no protocol. The published clients do
	// not offer one unless they are told to (false).
	RequireALPN bool
	// StatelessResetKey lets clients notice at once that the broker restarted, if it
	// is the same before and after (none).
	StatelessResetKey *quic.StatelessResetKey
	// DisableGRO receives datagrams one by one (false).
	DisableGRO bool

	// Auth, Directory and Egress are what the server serves with. Required. The
	// server does not close Egress.
	Auth      Authenticator
	Directory Directory
	Egress    *egress.Engine

	// NodeID names this broker in a topology ("broker").
	NodeID string
	// Advertise is the host:port that clients are told for this broker. Empty: the
	// topology is empty, and clients go on using the address they were given.
	Advertise string
	// Cluster says that there are other brokers, which publishes are forwarded to and
	// clients are sent to (false).
	Cluster bool

	// MaxConnections counts connections, handshakes included (8192), and
	// MaxConnectionsPerAddress those of one IPv4 address or IPv6 /64 (half of
	// MaxConnections).
	MaxConnections           int
	MaxConnectionsPerAddress int
	// MaxStreams is how many streams a client may have open on a connection (2048).
	MaxStreams int
	// MaxUniStreams is the same for announce and publish-only streams (64).
	MaxUniStreams int
	// MaxUnauthenticated is how many streams of a connection are read at a time before
	// one of them has authenticated (16). A connection that opens 16 times as many
	// until then is closed.
	MaxUnauthenticated int
	// MaxSubscriptions bounds the subscriptions of a connection (1024).
	MaxSubscriptions int
	// AuthTimeout ends a connection none of whose streams has authenticated (10 s). While
	// three quarters of MaxConnections are taken newcomers have a tenth of it.
	AuthTimeout time.Duration
	// IdleTimeout ends a connection that is silent (30 s); keep-alives are sent at a
	// third of it.
	IdleTimeout time.Duration
	// EventStreamWait is how long a subscribe waits for its client to allow one more
	// event stream, and for the hello to be taken (5 s).
	EventStreamWait time.Duration

	// StreamWindow and ConnectionWindow are the largest receive windows (16 MiB,
	// 48 MiB): a stream whose publishes wait leaves most of its connection to the
	// others. WindowBudget is what all connections together may be granted beyond
	// their first MiB (1 GiB).
	StreamWindow, ConnectionWindow, WindowBudget int64

	// IngressBytes, ConnectionIngressBytes and ShardIngressBytes bound the publishes
	// that are not committed yet: in the process (64 MiB), of a connection (16 MiB),
	// and of a connection to one shard (4 MiB).
	IngressBytes, ConnectionIngressBytes, ShardIngressBytes int64
	// PublishIngressWait is how long a publish waits for that room, during which its
	// stream is not read (2 s).
	PublishIngressWait time.Duration
	// OverloadRetry is the wait suggested to a publisher without room (250 ms).
	OverloadRetry time.Duration
	// MaxUnanswered is how many acked publishes of a stream may be without an answer
	// that QUIC has taken (4096), and AnswerTimeout how long a client may leave the
	// answers of a stream unread before that stream is reset (30 s).
	MaxUnanswered int
	AnswerTimeout time.Duration
	// MaxRecordBytes bounds a record (and is at most wire.MaxRecord, its default);
	// MaxBatchBytes the records of a publish (wire.MaxRecordsBytes).
	MaxRecordBytes, MaxBatchBytes int

	// Metrics to update; nil: they count for nobody.
	Metrics *metrics.Metrics
	// Log; nil: none.
	Log *slog.Logger
}

// Validate reports every problem of the configuration at once.
func (c *Config) Validate() error {
	var errs []error
	for name, missing := range map[string]bool{
		"certificate": c.Certificate == nil, "authenticator": c.Auth == nil,
		"directory": c.Directory == nil, "egress engine": c.Egress == nil,
		"CA certificates of clients": c.ClientAuth != ClientAuthNone && c.ClientCAs == nil,
	} {
		if missing {
			errs = append(errs, fmt.Errorf("server: no %s", name))
		}
	}
	return errors.Join(append(errs, c.ValidateLimits())...)
}

// ValidateLimits is Validate without the parts that the server serves with, which
// whoever assembles a broker has only later.
func (c *Config) ValidateLimits() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("server: "+format, args...))
	}
	if c.ClientAuth > ClientAuthRequired {
		fail("client authentication: %d is no mode", c.ClientAuth)
	}
	if c.Advertise != "" {
		host, port, err := net.SplitHostPort(c.Advertise)
		switch {
		case err != nil:
			fail("advertised address: %w", err)
		case host == "" || port == "" || port == "0":
			fail("advertised address %q: want host:port", c.Advertise)
		}
	}
	for name, v := range map[string]int64{
		"connections": int64(c.MaxConnections), "connections of an address": int64(c.MaxConnectionsPerAddress),
		"streams": int64(c.MaxStreams), "unidirectional streams": int64(c.MaxUniStreams),
		"unauthenticated streams": int64(c.MaxUnauthenticated), "subscriptions": int64(c.MaxSubscriptions),
		"authentication timeout": int64(c.AuthTimeout), "idle timeout": int64(c.IdleTimeout),
		"event stream wait": int64(c.EventStreamWait), "stream window": c.StreamWindow,
		"connection window": c.ConnectionWindow, "window budget": c.WindowBudget,
		"ingress bytes": c.IngressBytes, "ingress bytes of a connection": c.ConnectionIngressBytes,
		"ingress bytes of a shard": c.ShardIngressBytes, "publish wait": int64(c.PublishIngressWait),
		"overload retry": int64(c.OverloadRetry), "unanswered publishes": int64(c.MaxUnanswered),
		"answer timeout": int64(c.AnswerTimeout), "record bytes": int64(c.MaxRecordBytes), "batch bytes": int64(c.MaxBatchBytes),
	} {
		if v < 0 {
			fail("%s: %d is negative", name, v)
		}
	}
	if c.MaxRecordBytes > wire.MaxRecord {
		fail("record bytes: %d is above %d, what an event frame carries", c.MaxRecordBytes, wire.MaxRecord)
	}
	if c.MaxBatchBytes > wire.MaxRecordsBytes {
		fail("batch bytes: %d is above %d, what an event frame carries", c.MaxBatchBytes, wire.MaxRecordsBytes)
	}
	d := *c
	d.setDefaults()
	if d.StreamWindow > d.ConnectionWindow {
		fail("stream window: %d is above the connection's %d", d.StreamWindow, d.ConnectionWindow)
	}
	if d.ConnectionIngressBytes > d.IngressBytes || d.ShardIngressBytes > d.ConnectionIngressBytes {
		fail("ingress bytes: want shard <= connection <= process, have %d, %d, %d",
			d.ShardIngressBytes, d.ConnectionIngressBytes, d.IngressBytes)
	}
	return errors.Join(errs...)
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (c *Config) setDefaults() {
	or(&c.Addr, ":5000")
	or(&c.NodeID, "broker")
	or(&c.MaxConnections, 8192)
	or(&c.MaxConnectionsPerAddress, max(1, c.MaxConnections/2))
	or(&c.MaxStreams, 2048)
	or(&c.MaxUniStreams, 64)
	or(&c.MaxUnauthenticated, 16)
	or(&c.MaxSubscriptions, 1024)
	or(&c.AuthTimeout, 10*time.Second)
	or(&c.IdleTimeout, 30*time.Second)
	or(&c.EventStreamWait, 5*time.Second)
	or(&c.StreamWindow, 16<<20)
	or(&c.ConnectionWindow, 48<<20)
	or(&c.WindowBudget, 1<<30)
	or(&c.IngressBytes, 64<<20)
	or(&c.ConnectionIngressBytes, 16<<20)
	or(&c.ShardIngressBytes, 4<<20)
	or(&c.PublishIngressWait, 2*time.Second)
	or(&c.OverloadRetry, 250*time.Millisecond)
	or(&c.MaxUnanswered, 4096)
	or(&c.AnswerTimeout, 30*time.Second)
	or(&c.MaxRecordBytes, wire.MaxRecord)
	or(&c.MaxBatchBytes, wire.MaxRecordsBytes)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// WithDefaults is the configuration with what is not set filled in.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}
