package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/client"
)

const testWait = 60 * time.Second

// running is a broker in development mode on free ports, with whatever is in dir.
type running struct {
	t      *testing.T
	dir    string
	broker *Broker
	dev    devContext
}

func devConfig(dir string) Config {
	return Config{
		DataDir: dir, Dev: true, Listen: "127.0.0.1:0", Admin: Admin{Listen: "127.0.0.1:0"},
		Streams: StreamDefaults{SegmentBytes: 1 << 20},
	}
}

func run(t *testing.T, dir string, change ...func(*Config)) *running {
	t.Helper()
	cfg := devConfig(dir)
	for _, f := range change {
		f(&cfg)
	}
	b, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, dir: dir, broker: b}
	t.Cleanup(r.stop)
	doc, err := vfs.ReadFile(vfs.OS, DevContext(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(doc, &r.dev); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *running) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	if err := r.broker.Shutdown(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.broker.Wait(); err != nil {
		r.t.Error(err)
	}
}

func (r *running) ctx() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), testWait)
	r.t.Cleanup(cancel)
	return ctx
}

// client connects as the command line does.
func (r *running) client() *client.Client {
	r.t.Helper()
	c, err := client.Dial(r.ctx(), client.Config{
		Addrs: []string{r.dev.Addr}, Tenant: r.dev.Tenant, Token: r.dev.Token,
		CAFile: filepath.Join(r.dir, devName, r.dev.CAFile),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *running) admin() *admin.Client {
	transport := &http.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &admin.Client{BaseURL: "http://" + r.dev.Admin, Token: r.dev.Token, HTTP: &http.Client{Transport: transport}}
}

func named(stream string) admin.Name {
	return admin.Name{Tenant: devTenant, Namespace: catalog.DefaultNamespace, Stream: stream}
}

func (r *running) create(spec admin.StreamSpec) admin.Stream {
	r.t.Helper()
	st, created, err := r.admin().CreateStream(r.ctx(), spec, "")
	if err != nil || !created {
		r.t.Fatalf("create %s: created %v, %v", spec.Name, created, err)
	}
	return st
}

func streamOf(name string) client.Stream {
	return client.Stream{Namespace: catalog.DefaultNamespace, Name: name}
}

// publish publishes n records, which say their own offsets, counted from first.
func (r *running) publish(c *client.Client, stream string, first, n int) {
	r.t.Helper()
	for i := first; i < first+n; i++ {
		got, err := c.Publish(r.ctx(), streamOf(stream), client.Message{Payload: fmt.Append(nil, i)})
		if err != nil || !got.HasOffset || got.Offset != uint64(i) {
			r.t.Fatalf("publish %d: %+v, %v", i, got, err)
		}
	}
}

// read reads n records from a start; they say their own offsets.
func (r *running) read(c *client.Client, stream string, from client.Start, first, n int) {
	r.t.Helper()
	sub, err := c.Subscribe(r.ctx(), streamOf(stream), client.SubscribeConfig{Start: from})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	r.expect(sub, first, n)
}

func (r *running) expect(sub *client.Subscription, first, n int) {
	r.t.Helper()
	for i := first; i < first+n; i++ {
		e, err := sub.Next(r.ctx())
		if err != nil {
			r.t.Fatalf("record %d: %v", i, err)
		}
		if e.Offset != uint64(i) || string(e.Payload) != fmt.Sprint(i) {
			r.t.Fatalf("record %d: got offset %d, %q", i, e.Offset, e.Payload)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(testWait)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", testWait, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// logLines keeps what was logged.
type logLines struct {
	slog.Handler

	mu    sync.Mutex
	lines []string
}

func newLogLines() *logLines { return &logLines{Handler: slog.DiscardHandler} }

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}
