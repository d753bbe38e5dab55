package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/server"
	"felix.dev/felix/broker/wal"
)

// Broker is a running broker.
type Broker struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics.Metrics

	lock     *dirLock // nil: no data directory
	keys     keys
	verifier *auth.Verifier
	cert     *server.CertificateFiles
	caFile   string
	devKey   *auth.SigningKey // nil: not in development mode
	streams  *directory
	changes  changes
	alone    *streams // nil in a cluster
	member   *member  // nil outside of one
	wal      *wal.Log // nil: no data directory
	journals *journals
	engine   *egress.Engine
	server   *server.Server

	admin     net.Listener // nil: none
	stopAdmin context.CancelFunc
	tasks     sync.WaitGroup // the admin server, and who watches for failures

	serving  atomic.Bool
	once     sync.Once
	shutdown error         // guarded by once
	down     chan struct{} // closed when Shutdown is through
	failOnce sync.Once
	failed   chan struct{} // closed at the first failure that ends the broker
	failure  error         // set before failed is closed
}

// Addr is the address that clients connect to.
func (b *Broker) Addr() net.Addr { return b.server.Addr() }

// AdminAddr is the address of the admin server; nil: there is none.
func (b *Broker) AdminAddr() net.Addr {
	if b.admin == nil {
		return nil
	}
	return b.admin.Addr()
}

// CAFile is the certificate file that clients can trust this broker by, if it made
// the certificate itself; otherwise it is the configured certificate.
func (b *Broker) CAFile() string { return b.caFile }

// Network says what the kernel granted the QUIC socket.
func (b *Broker) Network() server.Network { return b.server.Network() }

// Admin is the broker for whoever is in the same process: what the admin server
// serves, without HTTP and without permissions.
func (b *Broker) Admin() interface {
	admin.Streams
	admin.Subscriptions
} {
	return adminAPI{b.streams, b.changes}
}

// fail notes why the broker cannot go on.
func (b *Broker) fail(err error) {
	b.failOnce.Do(func() {
		b.failure = err
		close(b.failed)
	})
}

// Wait returns when the broker cannot go on, with the reason, or nil once Shutdown
// is through. A broker that has failed still has to be shut down.
func (b *Broker) Wait() error {
	select {
	case <-b.failed:
		return b.failure
	case <-b.down:
		return b.Err()
	}
}

// Err is why the broker cannot go on; nil: it can.
func (b *Broker) Err() error {
	select {
	case <-b.failed:
		return b.failure
	default:
		return nil
	}
}

// Run serves until ctx ends or the broker fails, and shuts it down.
func Run(ctx context.Context, cfg Config) error {
	b, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		err = nil
	case <-b.failed:
		err = b.failure
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(b.cfg.ShutdownTimeout))
	defer cancel()
	return errors.Join(err, b.Shutdown(stop))
}
