package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// serve starts a server and returns what Serve will return.
func serve(t *testing.T, cfg Config, ln net.Listener) (stop func(), done <-chan error) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	errs := make(chan error, 1)
	go func() { errs <- s.Serve(ctx, ln) }()
	return cancel, errs
}

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("does not end")
		return nil
	}
}

// slowStreams holds a call up until it is released.
type slowStreams struct {
	*fakeStreams
	entered, release chan struct{}
}

// Streams waits.
func (s slowStreams) Streams(ctx context.Context) ([]Stream, error) {
	close(s.entered)
	select {
	case <-s.release:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestServeLetsRequestsFinish(t *testing.T) {
	h := newHouse(t)
	slow := slowStreams{h.streams, make(chan struct{}), make(chan struct{})}
	h.cfg.Streams = slow
	ln := listen(t)
	stop, done := serve(t, h.cfg, ln)
	client := h.manager()
	client.BaseURL = "http://" + ln.Addr().String()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client.HTTP = &http.Client{Transport: transport}
	answered := make(chan error, 1)
	go func() {
		_, err := client.Streams(context.Background(), "", "")
		answered <- err
	}()
	<-slow.entered
	stop()
	for { // wait until nobody new is let in
		conn, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second)
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case err := <-done:
		t.Fatalf("ended under a request: %v", err)
	default:
	}
	close(slow.release)
	if err := <-answered; err != nil {
		t.Errorf("the request was cut off: %v", err)
	}
	if err := wait(t, done); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestServeDoesNotWaitForever(t *testing.T) {
	h := newHouse(t)
	slow := slowStreams{h.streams, make(chan struct{}), make(chan struct{})}
	h.cfg.Streams = slow
	h.cfg.ShutdownTimeout = 10 * time.Millisecond
	ln := listen(t)
	stop, done := serve(t, h.cfg, ln)
	client := h.manager()
	client.BaseURL = "http://" + ln.Addr().String()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client.HTTP = &http.Client{Transport: transport}
	answered := make(chan error, 1)
	go func() {
		_, err := client.Streams(context.Background(), "", "")
		answered <- err
	}()
	<-slow.entered
	stop()
	if err := wait(t, done); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := <-answered; err == nil {
		t.Error("answered")
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	h := newHouse(t)
	ln := listen(t)
	_, done := serve(t, h.cfg, ln)
	ln.Close()
	if err := wait(t, done); err == nil {
		t.Error("no error")
	}
}

func TestServeTLS(t *testing.T) {
	h := newHouse(t)
	donor := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	donor.Close()
	h.cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: donor.TLS.Certificates}
	ln := listen(t)
	stop, done := serve(t, h.cfg, ln)
	pool := x509.NewCertPool()
	pool.AddCert(donor.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}}
	client := &Client{BaseURL: "https://" + ln.Addr().String(), HTTP: &http.Client{Transport: transport}}
	if err := client.Live(t.Context()); err != nil {
		t.Error(err)
	}
	transport.CloseIdleConnections()
	stop()
	if err := wait(t, done); err != nil {
		t.Error(err)
	}
}

func TestChangesAreLogged(t *testing.T) {
	var out bytes.Buffer
	h := newHouse(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&out, nil)) })
	c := h.manager()
	h.subscribe(7, named("s"), 0)
	if _, _, err := c.CreateStream(t.Context(), StreamSpec{Name: named("s")}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateStream(t.Context(), named("s"), StreamChange{}); err != nil {
		t.Fatal(err)
	}
	if err := c.EndSubscription(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteStream(t.Context(), named("s")); err != nil {
		t.Fatal(err)
	}
	h.streams.err = errors.New("the disk is on fire")
	if _, err := c.Stream(t.Context(), named("s")); err == nil {
		t.Fatal("no error")
	}
	h.server.Close()
	got := out.String()
	for _, part := range []string{"stream created", "stream changed", "subscription ended", "stream deleted", "by=t1/alice", "on fire"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in\n%s", part, got)
		}
	}
	if strings.Contains(got, c.Token) {
		t.Error("the token is in the log")
	}
}

func TestConfigValidate(t *testing.T) {
	_, err := New(Config{MaxBodyBytes: -1})
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("got %v, want 5 problems", err)
	}
}
