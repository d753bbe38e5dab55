package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// What `felix serve --dev` promises: a context file is all that it takes to publish,
// subscribe and manage, and what was published is there after a restart.
func TestDevelopmentMode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := run(t, dir)
	if filepath.IsAbs(r.dev.CAFile) {
		t.Errorf("ca_file %q does not move with the data directory", r.dev.CAFile)
	}
	for _, name := range []string{"token", "context.yaml", "key.pem"} {
		info, err := os.Stat(filepath.Join(dir, devName, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	c := r.client()
	r.publish(c, devStream, 0, 10)
	r.read(c, devStream, client.Earliest(), 0, 10)
	list, err := r.admin().Streams(r.ctx(), "", "")
	if err != nil || len(list) != 1 || list[0].Spec.Name != named(devStream) || list[0].Shards[0].NextOffset != 10 {
		t.Errorf("streams: %+v, %v", list, err)
	}
	ready, err := r.admin().Readiness(r.ctx())
	if err != nil || !ready.Ready {
		t.Errorf("readiness: %+v, %v", ready, err)
	}
	token := r.dev.Token
	_ = c.Close()
	r.stop()

	again := run(t, dir)
	again.dev.Token = token // the key is the same one
	c = again.client()
	again.publish(c, devStream, 10, 1)
	again.read(c, devStream, client.At(5), 5, 6)
}

func TestMetricsAreServed(t *testing.T) {
	r := run(t, t.TempDir(), func(c *Config) { c.Version = "v1.2.3" })
	c := r.client()
	r.publish(c, devStream, 0, 3)
	r.read(c, devStream, client.Earliest(), 0, 3)
	scrape := func() string {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(r.ctx(), http.MethodGet, "http://"+r.dev.Admin+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	scrape() // totals that are carried over show with the next one
	text := scrape()
	for _, line := range []string{
		"felix_ready 1", "felix_connections 1", `felix_publish_requests_total{result="ok"} 3`, "felix_publish_records_total 3",
		`felix_stream_records_total{stream="dev/default/demo"} 3`, "felix_egress_records_total 3", "felix_connections_accepted_total 1",
		`version="v1.2.3"`, "felix_subscriptions_started_total 1",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s", line)
		}
	}
}

// Two brokers never share a data directory; the second says so and touches nothing.
func TestDataDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	if _, err := Start(t.Context(), devConfig(dir)); !errors.Is(err, ErrLocked) {
		t.Errorf("second broker: %v", err)
	}
	r.publish(r.client(), devStream, 0, 1)
	r.stop()
	run(t, dir)
}

// A start that fails leaves nothing behind: the next one works.
func TestFailedStartIsUndone(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	cfg := devConfig(dir)
	cfg.Admin.Listen = taken.Addr().String()
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "admin") {
		t.Fatalf("admin port taken: %v", err)
	}
	r := run(t, dir)
	r.publish(r.client(), devStream, 0, 1)
}

func TestAdminOverTLS(t *testing.T) {
	r := run(t, t.TempDir(), func(c *Config) { c.Admin.TLS = true })
	if !strings.HasPrefix(r.dev.Admin, "https://") {
		t.Errorf("context file names %q", r.dev.Admin)
	}
}

func TestRunUntilTold(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, devConfig(dir)) }()
	eventually(t, "it serves", func() bool { _, err := os.Stat(DevContext(dir)); return err == nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A broker without a data directory has memory streams and a certificate from files.
func TestBrokerWithoutStorage(t *testing.T) {
	first := run(t, t.TempDir()) // for its certificate and key file
	jwks := filepath.Join(t.TempDir(), "keys.json")
	set, err := first.broker.keys.dev.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(jwks, set, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Start(t.Context(), Config{
		Listen: "127.0.0.1:0", Admin: Admin{Disabled: true}, Auth: Auth{Keys: map[string]string{devTenant: jwks}},
		TLS: TLS{CertFile: filepath.Join(first.dir, tlsName, "tls.crt"), KeyFile: filepath.Join(first.dir, tlsName, "tls.key")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, dir: first.dir, broker: b, dev: first.dev}
	r.dev.Addr = b.Addr().String()
	t.Cleanup(r.stop)
	if b.AdminAddr() != nil {
		t.Error("there is an admin server")
	}
	if _, _, err := b.Admin().CreateStream(r.ctx(), admin.StreamSpec{Name: named("d")}, ""); err == nil {
		t.Error("a durable stream was made without storage")
	}
	st, _, err := b.Admin().CreateStream(r.ctx(), admin.StreamSpec{Name: named("m"), Durability: "Memory"}, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.client().Publish(r.ctx(), streamOf("m"), client.Message{Payload: []byte("x")})
	if err != nil || got.Offset != st.Shards[0].NextOffset {
		t.Errorf("%+v, %v", got, err)
	}
}
