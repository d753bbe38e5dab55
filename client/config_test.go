package client

import (
	"strings"
	"testing"
	"time"
)

func TestConfigValidate(t *testing.T) {
	good := Config{Addrs: []string{"127.0.0.1:5000", "broker.felix.svc:5000"}, Tenant: "t1", Token: "x"}
	if err := good.Validate(); err != nil {
		t.Fatalf("good configuration: %v", err)
	}
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"nothing", func(c *Config) { *c = Config{} }, []string{"no broker address", "no tenant", "neither a token"}},
		{"no port", func(c *Config) { c.Addrs = []string{"host"} }, []string{"not host:port"}},
		{"port 0", func(c *Config) { c.Addrs = []string{"host:0"} }, []string{"no port between"}},
		{"no host", func(c *Config) { c.Addrs = []string{":5000"} }, []string{"no host"}},
		{"IPv6", func(c *Config) { c.Addrs = []string{"[::1]:5000"} }, []string{"not IPv4"}},
		{"window", func(c *Config) { c.StreamWindow = 100 }, []string{"stream window"}},
		{"subscriptions", func(c *Config) { c.MaxSubscriptionsPerConn = -1 }, []string{"subscriptions per connection"}},
		{"keep-alive", func(c *Config) { c.KeepAlive = 4 * time.Second }, []string{"more than half"}},
		{"negative", func(c *Config) { c.DialTimeout, c.PublishTimeout = -1, -1 }, []string{"dial timeout", "publish timeout"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.change(&c)
			err := c.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %q, want it to say %q", err, w)
				}
			}
		})
	}
}

// B63: a path that is cut in one direction is noticed after up to 2.5 idle timeouts (the broker's keep-alive is half
// of one, and each side's timeout then begins with the last it heard), and a caller is to be told within 10 s.
func TestKeepAliveIsBelowHalfOfTheIdleTimeout(t *testing.T) {
	cfg := (&Config{}).withDefaults()
	q := newQUIC(&cfg)
	if q.KeepAlivePeriod > q.MaxIdleTimeout/2 || q.MaxIdleTimeout*5/2 > 10*time.Second {
		t.Errorf("keep-alive %v, idle timeout %v", q.KeepAlivePeriod, q.MaxIdleTimeout)
	}
	// A quarter more than all streams can hold: see connectionWindow.
	if want := ((127+1)*uint64(DefaultStreamWindow)*4 + 2) / 3; q.InitialConnectionReceiveWindow != want || q.MaxConnectionReceiveWindow != want {
		t.Errorf("connection window %d..%d, want it fixed at %d", q.InitialConnectionReceiveWindow, q.MaxConnectionReceiveWindow, want)
	}
}

func TestPublisherConfigValidate(t *testing.T) {
	tests := []struct {
		name string
		cfg  PublisherConfig
		want string // "": valid
	}{
		{"zero", PublisherConfig{}, ""},
		{"unacked and idempotent", PublisherConfig{Unacked: true, Idempotent: true}, "unacked"},
		{"unacked and at least once", PublisherConfig{Unacked: true, AtLeastOnce: true}, "unacked"},
		{"negative", PublisherConfig{MaxBatchRecords: -1}, "records of a batch"},
		{"batch above a frame", PublisherConfig{MaxBatchBytes: 16 << 20}, "bytes of a batch"},
		{"linger", PublisherConfig{Linger: time.Hour}, "linger"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
