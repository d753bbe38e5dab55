package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/server"
)

// Start makes a broker and serves until Shutdown. ctx is for starting only. When it
// fails everything that was begun is undone.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	cfg.Log = slog.New(newLogLimit(cfg.Log.Handler()))
	if cfg.Log.Enabled(ctx, slog.LevelDebug) {
		text, err := yaml.Marshal(cfg.Effective())
		cfg.Log.Debug("configuration in force", slog.String("config", string(text)), slog.Any("error", err))
	}
	b := &Broker{cfg: cfg, log: cfg.Log, down: make(chan struct{}), failed: make(chan struct{}), stopAdmin: func() {}}
	for _, step := range []func(context.Context) error{
		b.openData, b.openMetrics, b.openAuth, b.openCertificate, b.openWAL, b.openStreams, b.openAdmin, b.joinCluster,
		b.openServer, b.openDev,
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

func (b *Broker) openStreams(ctx context.Context) error {
	if b.cfg.Cluster != nil {
		return b.openMember(ctx)
	}
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
	o := b.opener()
	o.reserve = c.Reserve
	b.alone = openStreams(o, c, b.log)
	b.streams, b.changes = b.alone.directory, b.alone
	return nil
}

func (b *Broker) openServer(ctx context.Context) error {
	var err error
	if b.engine, err = egress.New(b.cfg.Egress.config()); err != nil {
		return err
	}
	cfg := b.cfg.serverConfig()
	cfg.Certificate, cfg.Auth, cfg.Directory, cfg.Egress = b.cert.Certificate, b.verifier, b.streams, b.engine
	if err := b.openClientAuth(cfg); err != nil {
		return err
	}
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

// openAdmin comes before the broker serves: one that waits for its cluster can be asked
// why.
func (b *Broker) openAdmin(ctx context.Context) error {
	if b.cfg.Admin.Disabled {
		return nil
	}
	return b.serveAdmin(ctx)
}

// openDev is development mode: the stream of the first examples, and how to use it all.
func (b *Broker) openDev(ctx context.Context) error {
	if !b.cfg.Dev {
		return nil
	}
	if err := b.makeDevStream(ctx); err != nil {
		return err
	}
	return b.writeDev(*b.devKey, b.caFile)
}

func (b *Broker) serveAdmin(ctx context.Context) error {
	verifier, err := auth.NewVerifier(auth.Config{
		Keys: b.keys, Audiences: []string{auth.AudienceBroker, auth.AudienceControlPlane},
	})
	if err != nil {
		return err
	}
	api := adminAPI{b.streams, b.changes}
	cfg := admin.Config{
		Streams: api, Subscriptions: api,
		Authorizer: admin.TokenAuthorizer{Verifier: verifier, SystemTenant: b.cfg.Auth.SystemTenant},
		Gatherer:   b.cfg.Registry, Readiness: b.readiness, Log: b.log,
	}
	if b.member != nil {
		cfg.Cluster = clusterAPI{b.member.cluster}
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
