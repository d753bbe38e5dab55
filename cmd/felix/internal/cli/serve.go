package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/cmd/felix/internal/term"
)

type serveOptions struct {
	config    string
	dev       bool
	data      string
	listen    string
	admin     string
	adminTLS  bool
	advertise string
	keys      []string
	certFile  string
	keyFile   string
	clientCA  string
	clients   choice
	logFormat choice
	logLevel  choice
	cluster   clusterOptions
}

func (a *app) serveCommand() *cobra.Command {
	o := &serveOptions{
		clients:   choice{allowed: []string{"None", "Optional", "Required"}},
		logFormat: newChoice("auto", "text", "json"), logLevel: newChoice("info", "debug", "warn", "error"),
	}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker",
		Long: `Run a broker until SIGINT or SIGTERM. It then takes nothing new, answers every publish that it has taken,
gives readers what is committed, and closes its logs; a second signal ends it at once.

With --dev it is ready to use: it makes a key, a token for the tenant "dev", the stream "demo", and a context
file that the other commands find by themselves. Without it, it needs --keys, or auth.keys in the file.

With --join it becomes one of a cluster, with --cluster the first of one. Brokers of a cluster recognise each
other by certificates of one CA ('felix cluster certs' makes them); 'felix dev-cluster' starts a whole cluster here.

Everything can also be set in a YAML file (--config); flags win over it. docs/configuration.md has all its
fields, and the way from nothing to a broker under systemd or in a container.`,
		Example: `  felix serve --dev
  felix token keygen --out shop.pem --jwks shop.jwks   # once: a key, and what the broker needs of it
  felix serve --keys shop=shop.jwks --tls-cert tls.crt --tls-key tls.key
  felix serve --config broker.yaml --listen :6000
  felix serve --keys shop=shop.jwks --advertise b:5000 --join a:5002 --peer-ca ca.crt --peer-cert b.crt --peer-key b.key`,
		Args: args(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "YAML file with the configuration")
	f.BoolVar(&o.dev, "dev", false, "development mode: make a key, a token, a stream and a context file")
	f.StringVar(&o.data, "data", "./data", "where everything is kept; empty: nowhere, with streams in memory only")
	f.StringVar(&o.listen, "listen", "", "UDP address for clients (default \":5000\", with --dev \"127.0.0.1:5000\")")
	f.StringVar(&o.admin, "admin", "", "TCP address of the HTTP admin, or none (default \":5001\", with --dev \"127.0.0.1:5001\")")
	f.BoolVar(&o.adminTLS, "admin-tls", false, "serve the admin by HTTPS, with the broker's certificate")
	f.StringVar(&o.advertise, "advertise", "", "host:port that clients are told for this broker")
	f.StringArrayVar(&o.keys, "keys", nil, "TENANT=FILE with the public keys that sign the tenant's tokens; may be repeated")
	f.StringVar(&o.certFile, "tls-cert", "", "PEM file with the certificate (default: one that signs itself, under --data)")
	f.StringVar(&o.keyFile, "tls-key", "", "PEM file with its private key")
	f.StringVar(&o.clientCA, "tls-client-ca", "", "PEM file with the CA certificates that sign those of clients")
	o.clients.register(cmd, "tls-client-auth", "", "whether clients present a certificate (default \"Required\" with --tls-client-ca)")
	o.cluster.register(cmd)
	o.logFormat.register(cmd, "log-format", "", "how to log; auto is text on a terminal and JSON otherwise")
	o.logLevel.register(cmd, "log-level", "", "what to log")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := a.brokerConfig(o, cmd.Flags().Changed)
		if err != nil {
			return err
		}
		return a.serve(cmd.Context(), cfg)
	}
	return cmd
}

// brokerConfig is the configuration file with what the command line says over it.
func (a *app) brokerConfig(o *serveOptions, given func(flag string) bool) (broker.Config, error) {
	cfg := broker.Config{DataDir: o.data}
	if o.config != "" {
		var err error
		if cfg, err = broker.ReadConfig(o.config); err != nil {
			if _, unread := errors.AsType[*fs.PathError](err); !unread {
				err = &usageError{err} // whoever restarts brokers can tell that it would not help
			}
			return cfg, err
		}
		// A file that does not say where is no wish to keep nothing: that is --data "".
		if given("data") || cfg.DataDir == "" {
			cfg.DataDir = o.data
		}
	}
	cfg.Dev = cfg.Dev || o.dev
	cfg.Listen = cmp.Or(o.listen, cfg.Listen)
	cfg.Advertise = cmp.Or(o.advertise, cfg.Advertise)
	cfg.TLS.CertFile = cmp.Or(o.certFile, cfg.TLS.CertFile)
	cfg.TLS.KeyFile = cmp.Or(o.keyFile, cfg.TLS.KeyFile)
	cfg.TLS.ClientCAFile = cmp.Or(o.clientCA, cfg.TLS.ClientCAFile)
	cfg.TLS.ClientAuth = cmp.Or(o.clients.value, cfg.TLS.ClientAuth)
	cfg.Admin.TLS = cfg.Admin.TLS || o.adminTLS
	if o.admin == "none" {
		cfg.Admin.Disabled = true
	} else {
		cfg.Admin.Listen = cmp.Or(o.admin, cfg.Admin.Listen)
	}
	for _, k := range o.keys {
		tenant, path, err := auth.ParseKeyFlag(k)
		if err != nil {
			return cfg, &usageError{fmt.Errorf("--keys: %w", err)}
		}
		if cfg.Auth.Keys == nil {
			cfg.Auth.Keys = map[string]string{}
		}
		cfg.Auth.Keys[tenant] = path
	}
	if err := o.cluster.apply(&cfg); err != nil {
		return cfg, err
	}
	if len(cfg.Auth.Keys) == 0 && !cfg.Dev {
		return cfg, usagef("nobody could authenticate: give --keys TENANT=FILE ('felix token keygen' makes the file), or --dev to try things out")
	}
	if err := cfg.Validate(); err != nil {
		return cfg, &usageError{err}
	}
	cfg.Log = a.logger(o)
	cfg.Version = a.env.Version
	return cfg, nil
}

// logger logs on standard error, for people on a terminal and for machines otherwise.
func (a *app) logger(o *serveOptions) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.logLevel.value)) // one of the allowed values
	options := &slog.HandlerOptions{Level: level}
	if o.logFormat.value == "text" || o.logFormat.value == "auto" && term.IsTerminal(a.env.Stderr) {
		return slog.New(slog.NewTextHandler(a.env.Stderr, options))
	}
	return slog.New(slog.NewJSONHandler(a.env.Stderr, options))
}

func (a *app) serve(ctx context.Context, cfg broker.Config) error {
	b, err := broker.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg.Dev {
		a.introduce(b, cfg)
	}
	over := make(chan error, 1)
	go func() { over <- b.Wait() }() // ends with Shutdown, at the latest
	select {
	case <-ctx.Done():
		cfg.Log.Info("broker is shutting down")
	case err = <-over:
		cfg.Log.Error("broker cannot go on", slog.Any("error", err))
	}
	within := cmp.Or(time.Duration(cfg.ShutdownTimeout), 15*time.Second)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := errors.Join(err, b.Shutdown(stopping)); err != nil {
		return err
	}
	cfg.Log.Info("broker is down")
	return nil
}

// introduce prints how to use a broker in development mode.
func (a *app) introduce(b *broker.Broker, cfg broker.Config) {
	style := term.NewStyle(a.env.Stdout, a.env.Sources.Getenv)
	t := term.NewTable("records", b.Addr().String()+" (QUIC)")
	if addr := b.AdminAddr(); addr != nil {
		t.Row("admin", "http"+map[bool]string{true: "s"}[cfg.Admin.TLS]+"://"+addr.String())
	}
	file := broker.DevContext(cmp.Or(cfg.DataDir, "data"))
	t.Row("context", file)
	t.Row("trust", b.CAFile())
	token, err := readDevToken(file)
	if err != nil {
		token = oneLine(err)
	}
	fmt.Fprintf(a.env.Stdout, "%s\n\n%s\nThe token of tenant %s, which may do everything in it:\n\n%s\n\n", style.Bold("Felix is serving."), t, devTenant, token)
	a.suggest(a.env.Stdout, style, file)
}
