package client

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"felix.dev/felix/broker/wire"
)

// Defaults of Config.
const (
	DefaultStreamWindow            = 512 << 10
	DefaultMaxSubscriptionsPerConn = 127
	DefaultDialTimeout             = 3 * time.Second
	DefaultDialStagger             = time.Second
	DefaultRequestTimeout          = 10 * time.Second
	DefaultPublishTimeout          = 30 * time.Second
	DefaultKeepAlive               = 1300 * time.Millisecond
	DefaultIdleTimeout             = 4 * time.Second
	DefaultSilenceTimeout          = time.Second
	DefaultName                    = "localhost"
)

// Config says which brokers to use and how. Its zero value lacks Addrs, Tenant and a token.
type Config struct {
	// Addrs are the brokers' client addresses, "host:port", IPv4 or names that resolve to IPv4. They are tried in
	// this order. More are learned from a cluster's topology.
	Addrs []string

	// Tenant is the tenant that the token is for.
	Tenant string
	// Token authenticates every stream. Ignored if TokenSource is set.
	Token string
	// TokenSource supplies the token instead. It is called when the first token is needed and again when a broker
	// refuses the one in use as unauthenticated; it must be safe for concurrent use.
	TokenSource func(ctx context.Context) (string, error)

	// CAFile is a PEM file with the certificates to trust; RootCAs is the same in memory and wins. If neither is
	// set the operating system's store is used.
	CAFile  string
	RootCAs *x509.CertPool
	// ServerName is the name that the broker's certificate is checked against for the addresses in Addrs. Empty: a
	// DNS name is checked as itself, an IP address as "localhost". A broker learned by its DNS name is always
	// checked as itself.
	ServerName string

	// StreamWindow is the fixed receive window of one subscription: how much the broker may send ahead of a reader.
	// 0: 512 KiB.
	StreamWindow uint64
	// MaxSubscriptionsPerConn is how many subscriptions share a connection before another one is opened. The
	// connection's receive window is 4/3 x (MaxSubscriptionsPerConn+1) x StreamWindow, so that no number of stalled
	// readers can hold up another subscription. 0: 127.
	MaxSubscriptionsPerConn int

	// DialTimeout bounds the attempt to reach one address, handshake and authentication included. 0: 3 s.
	DialTimeout time.Duration
	// DialStagger is how long one address is tried alone before the next one is tried beside it. 0: 1 s.
	DialStagger time.Duration
	// RequestTimeout bounds the wait for the answer to anything but a publish. 0: 10 s.
	RequestTimeout time.Duration
	// PublishTimeout bounds the time from Publish to the broker's answer. 0: 30 s.
	PublishTimeout time.Duration
	// KeepAlive is the period of the keep-alive on an idle connection, at most half of IdleTimeout. 0: 1.3 s.
	KeepAlive time.Duration
	// IdleTimeout is how long a connection may be silent before it counts as dead. The broker takes it over, and where
	// only its datagrams get through, a caller hears of it after up to two and a half times that: the default keeps this
	// within 10 s. 0: 4 s.
	IdleTimeout time.Duration

	// SilenceTimeout is how long a broker may leave unanswered what was sent to it, acknowledgements of packets included,
	// before the connection counts as dead. It is for clients that know another broker, which they go on with; others
	// wait for IdleTimeout. At least eight round trips, whatever it says. 0: 1 s.
	SilenceTimeout time.Duration

	// Log gets what no caller is told: lost connections and what is done about them. nil: nothing is logged.
	Log *slog.Logger
}

// Validate reports everything that is wrong with the configuration. A zero value in a field with a default is fine.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Addrs) == 0 {
		errs = append(errs, errors.New("no broker address is given"))
	}
	for _, a := range c.Addrs {
		if err := validAddr(a); err != nil {
			errs = append(errs, err)
		}
	}
	if c.Tenant == "" {
		errs = append(errs, errors.New("no tenant is given"))
	}
	if len(c.Tenant) > maxNameLen {
		errs = append(errs, fmt.Errorf("tenant has %d bytes, at most %d are possible", len(c.Tenant), maxNameLen))
	}
	if c.Token == "" && c.TokenSource == nil {
		errs = append(errs, errors.New("neither a token nor a token source is given"))
	}
	if w := c.StreamWindow; w != 0 && (w < 16<<10 || w > 1<<30) {
		errs = append(errs, fmt.Errorf("stream window %d is not between 16 KiB and 1 GiB", w))
	}
	if n := c.MaxSubscriptionsPerConn; n < 0 || n > 1000 {
		errs = append(errs, fmt.Errorf("%d subscriptions per connection are not between 1 and 1000", n))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"dial timeout", c.DialTimeout},
		{"dial stagger", c.DialStagger},
		{"request timeout", c.RequestTimeout},
		{"publish timeout", c.PublishTimeout},
		{"keep-alive", c.KeepAlive},
		{"idle timeout", c.IdleTimeout},
		{"silence timeout", c.SilenceTimeout},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s %v is negative", d.name, d.value))
		}
	}
	if f := c.withDefaults(); f.KeepAlive > f.IdleTimeout/2 {
		errs = append(errs, fmt.Errorf("keep-alive %v is more than half of the idle timeout %v", f.KeepAlive, f.IdleTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("felix: configuration: %w", err)
	}
	return nil
}

// withDefaults fills the zero fields that have a default.
func (c *Config) withDefaults() Config {
	f := *c
	setDefault(&f.StreamWindow, DefaultStreamWindow)
	setDefault(&f.MaxSubscriptionsPerConn, DefaultMaxSubscriptionsPerConn)
	setDefault(&f.DialTimeout, DefaultDialTimeout)
	setDefault(&f.DialStagger, DefaultDialStagger)
	setDefault(&f.RequestTimeout, DefaultRequestTimeout)
	setDefault(&f.PublishTimeout, DefaultPublishTimeout)
	setDefault(&f.KeepAlive, DefaultKeepAlive)
	setDefault(&f.IdleTimeout, DefaultIdleTimeout)
	setDefault(&f.SilenceTimeout, DefaultSilenceTimeout)
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	return f
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// validAddr checks the form of host:port; whether the name resolves is found out when it is dialled.
func validAddr(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return fmt.Errorf("address %q is not host:port: %w", a, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %q has no port between 1 and 65535", a)
	}
	if host == "" {
		return fmt.Errorf("address %q has no host", a)
	}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.Unmap().Is4() {
		return fmt.Errorf("address %q is not IPv4", a)
	}
	return nil
}

// What this client offers in every auth: the flag bits it can read, and the messages. Bits of requests are for the
// broker to advertise and are left out.
const (
	offeredFlags    = wire.Flags(0x1FFF)
	offeredFeatures = wire.FeatureRedirect | wire.FeatureErrorCodes | wire.FeatureShardMoved | wire.FeatureUnsupported |
		wire.FeatureSubscriptionLagged | wire.FeatureIdempotentProducer | wire.FeatureSequenceReused
)
