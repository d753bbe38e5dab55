package broker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/server"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
)

// Duration is a time.Duration that is text in the file: "30s".
type Duration = admin.Duration

// Config says what a broker is. Zero values are the defaults in brackets.
type Config struct {
	// DataDir is where everything is kept. Empty: nothing is, and only memory
	// streams can be made. In development mode ("./data").
	DataDir string `json:"data_dir,omitempty"`
	// Listen is the UDP address of the QUIC listener (":5000"; in development mode
	// "127.0.0.1:5000").
	Listen string `json:"listen,omitempty"`
	// Advertise is the host:port that clients are told for this broker (none).
	Advertise string `json:"advertise,omitempty"`
	// NodeID names the broker (the host's name).
	NodeID string `json:"node_id,omitempty"`
	// RequireALPN refuses clients that offer no protocol, as the published ones do
	// by default (false).
	RequireALPN bool `json:"require_alpn,omitempty"`
	// Dev makes a broker that is ready to use: a key, a token that may do everything
	// in the tenant "dev", the stream dev/default/demo, and a context file for the
	// command line, all under DataDir (false).
	Dev bool `json:"dev,omitempty"`

	TLS     TLS            `json:"tls,omitzero"`
	Auth    Auth           `json:"auth,omitzero"`
	Admin   Admin          `json:"admin,omitzero"`
	Limits  Limits         `json:"limits,omitzero"`
	Streams StreamDefaults `json:"streams,omitzero"`
	Egress  Egress         `json:"egress,omitzero"`
	// Cluster makes it one of several brokers (alone).
	Cluster *Cluster `json:"cluster,omitempty"`

	// ShutdownTimeout is what Run gives a shutdown (15 s).
	ShutdownTimeout Duration `json:"shutdown_timeout,omitzero"`

	// FS is where the logs of streams are; nil: on the disk, like everything else.
	FS vfs.FS `json:"-"`
	// Now is the clock of records, of retention and of who is a member; nil: time.Now.
	Now func() time.Time `json:"-"`
	// Log; nil: none. Registry is where metrics are registered and what /metrics
	// shows; nil: one of the broker's own. Version and Revision are shown there.
	Log               *slog.Logger         `json:"-"`
	Registry          *prometheus.Registry `json:"-"`
	Version, Revision string               `json:"-"`
}

// TLS is the certificate. Without files the broker makes one for itself under
// DataDir, which clients can use as their file of CA certificates.
type TLS struct {
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
	// ClientCAFile has the certificates that sign those of clients (none), and
	// ClientAuth says whether clients present one: "None", "Optional" or "Required"
	// ("Required" with a ClientCAFile, "None" without).
	ClientCAFile string `json:"client_ca_file,omitempty"`
	ClientAuth   string `json:"client_auth,omitempty"`
}

// clientAuth reads ClientAuth.
func (t *TLS) clientAuth() (server.ClientAuth, error) {
	a, ok := server.ClientAuthNone, true
	switch {
	case t.ClientAuth != "":
		a, ok = server.ParseClientAuth(t.ClientAuth)
	case t.ClientCAFile != "":
		a = server.ClientAuthRequired
	}
	switch {
	case !ok:
		return a, fmt.Errorf("broker: tls: client_auth %q: want None, Optional or Required", t.ClientAuth)
	case (a == server.ClientAuthNone) != (t.ClientCAFile == ""):
		return a, fmt.Errorf("broker: tls: client_auth %s: a client_ca_file goes with Optional and Required, and with them only", a)
	}
	return a, nil
}

// Auth says who is believed.
type Auth struct {
	// Keys is tenant to JWK set file. Required, except in development mode.
	Keys map[string]string `json:"keys,omitempty"`
	// SystemTenant is a tenant whose tokens may manage streams of all tenants, as
	// far as their permissions reach (none).
	SystemTenant string `json:"system_tenant,omitempty"`
}

// Admin is the HTTP side.
type Admin struct {
	// Listen is its TCP address (":5001"; in development mode "127.0.0.1:5001").
	Listen string `json:"listen,omitempty"`
	// TLS serves HTTPS with the broker's certificate (false).
	TLS bool `json:"tls,omitempty"`
	// Disabled leaves it out (false).
	Disabled bool `json:"disabled,omitempty"`
}

// Limits bound what clients may hold; see server.Config for each.
type Limits struct {
	Connections            int      `json:"connections,omitempty"`
	ConnectionsPerAddress  int      `json:"connections_per_address,omitempty"`
	StreamsPerConnection   int      `json:"streams_per_connection,omitempty"`
	Subscriptions          int      `json:"subscriptions_per_connection,omitempty"`
	AuthTimeout            Duration `json:"auth_timeout,omitzero"`
	IdleTimeout            Duration `json:"idle_timeout,omitzero"`
	IngressBytes           int64    `json:"ingress_bytes,omitempty"`
	ConnectionIngressBytes int64    `json:"connection_ingress_bytes,omitempty"`
	ShardIngressBytes      int64    `json:"shard_ingress_bytes,omitempty"`
	PublishIngressWait     Duration `json:"publish_ingress_wait,omitzero"`
	MaxRecordBytes         int      `json:"max_record_bytes,omitempty"`
	MaxBatchBytes          int      `json:"max_batch_bytes,omitempty"`
	// MaxStreams bounds the streams of the catalog (10000).
	MaxStreams int `json:"streams,omitempty"`
}

// StreamDefaults are for streams that do not say otherwise; see stream.Config and
// seglog.Config for each.
type StreamDefaults struct {
	TailBytes    int64    `json:"tail_bytes,omitempty"`
	QueueEntries int      `json:"queue_entries,omitempty"`
	QueueBytes   int64    `json:"queue_bytes,omitempty"`
	OnFull       string   `json:"on_full,omitempty"`
	BlockTimeout Duration `json:"block_timeout,omitzero"`
	PublishWait  Duration `json:"publish_wait,omitzero"`
	PollInterval Duration `json:"poll_interval,omitzero"`
	BatchEvents  int      `json:"batch_events,omitempty"`
	BatchBytes   int      `json:"batch_bytes,omitempty"`
	SegmentBytes int64    `json:"segment_bytes,omitempty"`
	// Fsync is "Always" or "Interval" ("Always").
	Fsync      string   `json:"fsync,omitempty"`
	FsyncEvery Duration `json:"fsync_every,omitzero"`
}

// Egress is how subscriptions are written; see egress.Config for each.
type Egress struct {
	Lanes                 int      `json:"lanes,omitempty"`
	LanePolicy            string   `json:"lane_policy,omitempty"`
	SpreadConnections     bool     `json:"spread_connections,omitempty"`
	SlowConsumerTimeout   Duration `json:"slow_consumer_timeout,omitzero"`
	MaxBytesPerConnection int64    `json:"max_bytes_per_connection,omitempty"`
	PieceBytes            int      `json:"piece_bytes,omitempty"`
}

// ReadConfig reads a YAML file. A field that is not known is an error: it would be
// a setting that silently does nothing.
func ReadConfig(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("broker: configuration: %w", err)
	}
	var c Config
	if err := yaml.UnmarshalStrict(b, &c); err != nil {
		return Config{}, fmt.Errorf("broker: configuration %s: %w", path, err)
	}
	return c, nil
}

func (c *Config) setDefaults() {
	host := ""
	if c.Dev {
		host = "127.0.0.1"
		c.DataDir = cmp.Or(c.DataDir, "data")
	}
	c.Listen = cmp.Or(c.Listen, net.JoinHostPort(host, "5000"))
	c.Admin.Listen = cmp.Or(c.Admin.Listen, net.JoinHostPort(host, "5001"))
	if c.NodeID == "" {
		c.NodeID = hostname()
	}
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, Duration(15*time.Second))
	c.Streams.OnFull = cmp.Or(c.Streams.OnFull, stream.DropNew.String())
	c.Streams.Fsync = cmp.Or(c.Streams.Fsync, fsyncAlways)
	if c.Cluster != nil {
		own := *c.Cluster
		own.setDefaults(c.Advertise)
		c.Cluster = &own
	}
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "broker"
	}
	return name
}

const (
	fsyncAlways   = "Always"
	fsyncInterval = "Interval"
)

// Validate reports every problem of the configuration at once. What it cannot know
// (whether files can be read, whether a port is free) is an error of Start.
func (c *Config) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("broker: "+format, args...)) }
	d := *c
	d.setDefaults()
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		fail("tls: cert_file and key_file go together")
	}
	if _, err := c.TLS.clientAuth(); err != nil {
		errs = append(errs, err)
	}
	if c.TLS.CertFile == "" && d.DataDir == "" {
		fail("tls: without a data_dir there is nowhere to keep a certificate: give cert_file and key_file")
	}
	if len(c.Auth.Keys) == 0 && !c.Dev {
		fail("auth: no keys: nobody could authenticate")
	}
	for tenant, path := range c.Auth.Keys {
		if tenant == "" || path == "" {
			fail("auth: key file %q for tenant %q: both are required", path, tenant)
		}
		if tenant == devTenant && c.Dev {
			fail("auth: the tenant %q has a key of its own in development mode", devTenant)
		}
	}
	for name, addr := range map[string]string{"listen": d.Listen, "admin: listen": d.Admin.Listen} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			fail("%s: %w", name, err)
		}
	}
	if d.Cluster != nil {
		if err := d.Cluster.validate(&d); err != nil {
			errs = append(errs, err)
		}
	}
	if _, ok := stream.ParseOnFull(d.Streams.OnFull); !ok {
		fail("streams: on_full %q: want DropNew, Block or CatchUp", c.Streams.OnFull)
	}
	if s := d.Streams.Fsync; s != fsyncAlways && s != fsyncInterval {
		fail("streams: fsync %q: want %s or %s", s, fsyncAlways, fsyncInterval)
	}
	if c.Streams.FsyncEvery < 0 || c.Streams.SegmentBytes < 0 || c.ShutdownTimeout < 0 || c.Limits.MaxStreams < 0 {
		fail("a size or a time is negative")
	}
	if _, ok := egress.ParseLanePolicy(c.Egress.LanePolicy); !ok {
		fail("egress: lane_policy %q is not known", c.Egress.LanePolicy)
	} else if e := c.Egress.config(); e.Validate() != nil {
		errs = append(errs, e.Validate())
	}
	if s := d.shardConfig(); s.Validate() != nil {
		errs = append(errs, s.Validate())
	}
	if err := d.serverConfig().ValidateLimits(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (e Egress) config() egress.Config {
	policy, _ := egress.ParseLanePolicy(e.LanePolicy) // validated
	return egress.Config{
		Lanes: e.Lanes, Policy: policy, SpreadConnections: e.SpreadConnections,
		SlowConsumerTimeout:   time.Duration(e.SlowConsumerTimeout),
		MaxBytesPerConnection: e.MaxBytesPerConnection, PieceBytes: e.PieceBytes,
	}
}

// shardConfig is what all shards have in common.
func (c *Config) shardConfig() stream.Config {
	s := &c.Streams
	onFull, _ := stream.ParseOnFull(s.OnFull) // validated
	return stream.Config{
		TailBytes:    s.TailBytes,
		Queue:        stream.Queue{Entries: s.QueueEntries, Bytes: s.QueueBytes, OnFull: onFull},
		BlockTimeout: time.Duration(s.BlockTimeout), PublishWait: time.Duration(s.PublishWait),
		PollInterval: time.Duration(s.PollInterval),
		BatchEvents:  s.BatchEvents, BatchBytes: s.BatchBytes,
	}
}

func (c *Config) path(elem ...string) string {
	return filepath.Join(append([]string{c.DataDir}, elem...)...)
}
