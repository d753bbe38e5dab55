package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
)

// Config configures a Server. The zero value of each optional field is usable.
type Config struct {
	// Streams, Subscriptions and Authorizer are what the server serves with.
	// Required.
	Streams       Streams
	Subscriptions Subscriptions
	Authorizer    Authorizer
	// Cluster is the broker's. Nil: it is alone.
	Cluster Cluster
	// Gatherer is what /metrics shows. Required.
	Gatherer prometheus.Gatherer
	// Readiness lists what readiness depends on. It must answer at once. Nil:
	// always ready.
	Readiness func(ctx context.Context) []Check
	// Liveness is an error when the process should be restarted. Nil: it never
	// should.
	Liveness func() error
	// TLS serves HTTPS. Nil: plain HTTP, for a port that nobody else can reach.
	TLS *tls.Config
	// MaxBodyBytes bounds the body of a request. 0: 1 MiB.
	MaxBodyBytes int64
	// MaxConnections bounds connections, a quarter of it those of one address. 0: 256.
	MaxConnections int
	// ShutdownTimeout is how long requests under way may still take when Serve
	// has to end. 0: 5 s.
	ShutdownTimeout time.Duration
	// Log is told of changes and of errors. Nil: nobody is.
	Log *slog.Logger
}

// Validate reports every problem of the configuration at once.
func (c Config) Validate() error {
	var errs []error
	for _, required := range []struct {
		what    string
		missing bool
	}{
		{"streams", c.Streams == nil},
		{"subscriptions", c.Subscriptions == nil},
		{"authorizer", c.Authorizer == nil},
		{"metrics gatherer", c.Gatherer == nil},
	} {
		if required.missing {
			errs = append(errs, errors.New("admin: no "+required.what))
		}
	}
	if c.MaxBodyBytes < 0 || c.MaxConnections < 0 || c.ShutdownTimeout < 0 {
		errs = append(errs, errors.New("admin: a limit is negative"))
	}
	return errors.Join(errs...)
}

// Times of a connection: short ones, as every request and every answer is small.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 96 << 10 // the longest token fits

	// addressShare is the part of the connections that one address may have.
	addressShare = 4
)

// Server is the broker's HTTP server.
type Server struct {
	cfg     Config
	handler http.Handler
}

// New checks the configuration and makes a Server of it.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.MaxBodyBytes = cmp.Or(cfg.MaxBodyBytes, 1<<20)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, 256)
	cfg.ShutdownTimeout = cmp.Or(cfg.ShutdownTimeout, 5*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg}
	s.handler = s.routes()
	return s, nil
}

// Handler is the server's handler, for tests and for whoever has a server of
// their own.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers requests until ctx ends, lets those under way finish, and closes
// the listener. It returns nil after an orderly end.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         s.cfg.TLS,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
		// Requests under way outlive ctx: they have the shutdown timeout.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	unheard := newUnheard()
	srv.ConnState = unheard.state
	limited := netutil.LimitListener(limitAddresses(ln, max(1, s.cfg.MaxConnections/addressShare)), s.cfg.MaxConnections)
	served := make(chan error, 1)
	go func() {
		if s.cfg.TLS != nil {
			served <- srv.ServeTLS(limited, "", "")
		} else {
			served <- srv.Serve(limited)
		}
	}()
	select {
	case err := <-served:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	// The contexts of ctx are over; the end has one of its own.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer cancel()
	unheard.close()
	err := srv.Shutdown(stop)
	if err != nil {
		err = errors.Join(err, srv.Close())
	}
	if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
