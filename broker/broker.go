package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/server"
)

// certificateSoon is how long before its certificate expires a broker says so.
const certificateSoon = 21 * 24 * time.Hour

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
	streams  *streams
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

// Start makes a broker and serves until Shutdown. ctx is for starting only. When it
// fails everything that was begun is undone.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	cfg.Log = slog.New(newLogLimit(cfg.Log.Handler()))
	b := &Broker{cfg: cfg, log: cfg.Log, down: make(chan struct{}), failed: make(chan struct{}), stopAdmin: func() {}}
	for _, step := range []func(context.Context) error{
		b.openData, b.openMetrics, b.openAuth, b.openCertificate, b.openStreams, b.openServer, b.openAdmin,
	} {
		if err := step(ctx); err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(cfg.ShutdownTimeout))
			defer cancel()
			return nil, errors.Join(err, b.Shutdown(undo))
		}
	}
	b.serving.Store(true)
	b.log.Info("broker is serving", slog.String("addr", b.Addr().String()), slog.String("node", cfg.NodeID),
		slog.String("version", cfg.Version), slog.Int("streams", len(b.streams.all())))
	return b, nil
}

func (b *Broker) openData(context.Context) (err error) {
	if b.cfg.DataDir != "" {
		b.lock, err = lockDir(b.cfg.DataDir)
	}
	return err
}

func (b *Broker) openMetrics(context.Context) (err error) {
	reg := b.cfg.Registry
	if b.metrics, err = metrics.New(reg); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.metrics.SetBuild(b.cfg.Version, b.cfg.Revision, runtime.Version())
	err = errors.Join(
		reg.Register(collectors.NewGoCollector()),
		reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	if err != nil {
		return fmt.Errorf("broker: metrics: %w", err)
	}
	return nil
}

func (b *Broker) openAuth(context.Context) error {
	source := &b.keys
	if len(b.cfg.Auth.Keys) > 0 {
		var err error
		source.files, err = auth.NewFileKeys(auth.FileKeysConfig{Paths: b.cfg.Auth.Keys, OnProblem: b.keyProblem})
		if err != nil {
			return err
		}
	}
	if b.cfg.Dev {
		key, err := devKey(b.cfg.path(devName))
		if err != nil {
			return err
		}
		b.devKey = &key
		if source.dev, err = auth.NewKeySet(key.Public()); err != nil {
			return err
		}
	}
	var err error
	b.verifier, err = auth.NewVerifier(auth.Config{Keys: b.keys})
	return err
}

func (b *Broker) keyProblem(tenant string, err error) {
	if err != nil {
		b.log.Error("key file cannot be used, the last good keys stay in force", slog.String("tenant", tenant), slog.Any("error", err))
		return
	}
	b.log.Info("key file is good again", slog.String("tenant", tenant))
}

func (b *Broker) openCertificate(context.Context) error {
	files := b.cfg.TLS
	if files.CertFile == "" {
		made, err := server.EnsureSelfSigned(b.cfg.path(tlsName), b.certificateHosts(), time.Now())
		if err != nil {
			return err
		}
		files = TLS{CertFile: made.CertFile, KeyFile: made.KeyFile}
		if made.Made {
			b.log.Warn("made a certificate that signs itself: give it to clients as their file of CA certificates, or configure one of your own",
				slog.String("file", made.CertFile))
		}
	}
	b.caFile = files.CertFile
	var err error
	if b.cert, err = server.LoadCertificate(files.CertFile, files.KeyFile, nil, b.log); err != nil {
		return err
	}
	if check := b.certificateCheck(time.Now()); check.Message != "" {
		b.log.Warn("certificate "+check.Message, slog.String("file", files.CertFile))
	}
	return nil
}

// certificateHosts are the names that clients may know this broker by.
func (b *Broker) certificateHosts() (hosts []string) {
	hosts = append(hosts, hostname())
	for _, addr := range []string{b.cfg.Advertise, b.cfg.Listen} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || host == "" {
			continue
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (b *Broker) openStreams(context.Context) error {
	cfg := catalog.Config{InMemory: b.cfg.DataDir == "", MaxStreams: b.cfg.Limits.MaxStreams}
	if !cfg.InMemory {
		cfg.Path = b.cfg.path(catalogName)
		var err error
		// Data without a catalog is not an empty broker.
		if cfg.MustExist, err = hasStreams(b.cfg.DataDir); err != nil {
			return err
		}
	}
	c, err := catalog.Open(cfg)
	if err != nil {
		return err
	}
	if !cfg.InMemory {
		if err := sweep(b.cfg.FS, b.cfg.DataDir, c.List(), b.log); err != nil {
			return err
		}
	}
	b.streams = openStreams(&opener{
		dataDir: b.cfg.DataDir, defaults: b.cfg.shardConfig(), cfg: b.cfg.Streams, log: b.log, fs: b.cfg.FS,
		metrics: b.metrics, reserve: c.Reserve,
	}, c, b.log)
	if b.cfg.Dev {
		return b.makeDevStream()
	}
	return nil
}

func (b *Broker) openServer(ctx context.Context) error {
	var err error
	if b.engine, err = egress.New(b.cfg.Egress.config(b.log)); err != nil {
		return err
	}
	cfg := b.cfg.serverConfig()
	cfg.Certificate, cfg.Auth, cfg.Directory, cfg.Egress = b.cert.Certificate, b.verifier, b.streams, b.engine
	cfg.Metrics = b.metrics
	if b.cfg.DataDir != "" {
		if cfg.StatelessResetKey, err = resetKey(b.cfg.path(resetName)); err != nil {
			return err
		}
	}
	if b.server, err = server.Start(ctx, *cfg); err != nil {
		return err
	}
	b.tasks.Go(func() {
		select {
		case <-b.server.Failed():
			b.fail(b.server.Err())
		case <-b.down:
		}
	})
	return b.metrics.Collect(source{b}, metrics.CollectorConfig{})
}

func (b *Broker) openAdmin(ctx context.Context) error {
	if !b.cfg.Admin.Disabled {
		if err := b.serveAdmin(ctx); err != nil {
			return err
		}
	}
	if b.devKey != nil {
		return b.writeDev(*b.devKey, b.caFile)
	}
	return nil
}

func (b *Broker) serveAdmin(ctx context.Context) error {
	verifier, err := auth.NewVerifier(auth.Config{
		Keys: b.keys, Audiences: []string{auth.AudienceBroker, auth.AudienceControlPlane},
	})
	if err != nil {
		return err
	}
	api := adminAPI{b.streams}
	cfg := admin.Config{
		Streams: api, Subscriptions: api,
		Authorizer: admin.TokenAuthorizer{Verifier: verifier, SystemTenant: b.cfg.Auth.SystemTenant},
		Gatherer:   b.cfg.Registry, Readiness: b.readiness, Log: b.log,
	}
	if b.cfg.Admin.TLS {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: b.cert.Certificate}
	}
	srv, err := admin.New(cfg)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	if b.admin, err = lc.Listen(ctx, "tcp", b.cfg.Admin.Listen); err != nil {
		return fmt.Errorf("broker: admin: %w", err)
	}
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stopAdmin = stop
	b.tasks.Go(func() {
		if err := srv.Serve(serve, b.admin); err != nil {
			b.fail(fmt.Errorf("broker: admin: %w", err))
		}
	})
	return nil
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
	return adminAPI{b.streams}
}

func (b *Broker) ready() bool { return b.serving.Load() }

// readiness is what /readyz answers. A stream that cannot be served does not take
// the broker out of service: the others would go with it.
func (b *Broker) readiness(context.Context) []admin.Check {
	serving := admin.Check{Name: "serving", Ready: b.ready()}
	if !serving.Ready {
		serving.Message = "starting or shutting down"
	}
	streams := admin.Check{Name: "streams", Ready: true}
	if problems := b.streams.problems(); len(problems) > 0 {
		const show = 10
		more := ""
		if n := len(problems) - show; n > 0 {
			more = fmt.Sprintf("; and %d more", n)
		}
		streams.Message = strings.Join(slices.Clip(problems[:min(show, len(problems))]), "; ") + more
	}
	return []admin.Check{serving, streams, b.certificateCheck(time.Now())}
}

// certificateCheck says that the certificate expires soon, or has. Who is connected
// goes on with one that has, so that this takes nobody out of service either.
func (b *Broker) certificateCheck(now time.Time) admin.Check {
	c := admin.Check{Name: "certificate", Ready: true}
	at := b.cert.NotAfter()
	switch left := at.Sub(now); {
	case left <= 0:
		c.Message = fmt.Sprintf("expired at %s, no client can connect: replace the files, they are taken at once", at.UTC().Format(time.RFC3339))
	case left < certificateSoon:
		c.Message = fmt.Sprintf("expires at %s: replace the files, they are taken at once", at.UTC().Format(time.RFC3339))
	}
	return c
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
