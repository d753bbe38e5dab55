package broker_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
	"felix.dev/felix/client"
)

const (
	patience = 60 * time.Second
	tenant   = "dev"
)

// node is a broker as its users and its operator see it: over QUIC, over HTTP, in its
// metrics and in its log. The logs of its streams are on a disk that can fail.
type node struct {
	t      *testing.T
	broker *broker.Broker
	dir    string
	disk   *faultfs.FS
	reg    *prometheus.Registry
	log    *logged
	key    auth.SigningKey
	token  string
	once   sync.Once

	fresh series       // right after the start
	note  func(series) // told of each scrape, if not nil
}

func startNode(t *testing.T, change ...func(*broker.Config)) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{t: t, dir: dir, disk: faultfs.New(1), reg: prometheus.NewRegistry(), log: &logged{}}
	cfg := broker.Config{
		DataDir: dir, Dev: true, Listen: "127.0.0.1:0", Admin: broker.Admin{Listen: "127.0.0.1:0"},
		Streams: broker.StreamDefaults{SegmentBytes: 64 << 10, TailBytes: 64 << 10},
		FS:      n.disk, Registry: n.reg, Log: slog.New(n.log), Version: "v1",
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if n.broker, err = broker.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.stop)
	if n.key, err = auth.LoadKey(vfs.OS, filepath.Join(dir, "dev", "key.pem")); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "dev", "token"))
	if err != nil {
		t.Fatal(err)
	}
	n.token = strings.TrimSpace(string(token))
	n.fresh = n.scrape()
	return n
}

// stop shuts the broker down. What a failing disk says about it is not an error of
// the test.
func (n *node) stop() {
	n.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.broker.Shutdown(ctx); err != nil {
			n.t.Logf("shut down: %v", err)
		}
	})
}

func (n *node) ctx() context.Context {
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	n.t.Cleanup(cancel)
	return ctx
}

// dial connects a client whose window takes very little.
func (n *node) dial() *client.Client {
	n.t.Helper()
	c, err := client.Dial(n.ctx(), client.Config{
		Addrs: []string{n.broker.Addr().String()}, Tenant: tenant, Token: n.token, CAFile: n.broker.CAFile(),
		StreamWindow: 16 << 10, DialTimeout: patience, IdleTimeout: 30 * time.Second,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (n *node) http() *admin.Client {
	return &admin.Client{
		BaseURL: "http://" + n.broker.AdminAddr().String(), Token: n.token,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

func adminName(stream string) admin.Name {
	return admin.Name{Tenant: tenant, Namespace: "default", Stream: stream}
}

func streamOf(name string) client.Stream { return client.Stream{Namespace: "default", Name: name} }

func (n *node) create(name string, change ...func(*admin.StreamSpec)) {
	n.t.Helper()
	spec := admin.StreamSpec{Name: adminName(name)}
	for _, f := range change {
		f(&spec)
	}
	if _, _, err := n.http().CreateStream(n.ctx(), spec, ""); err != nil {
		n.t.Fatal(err)
	}
}

func queue(entries int, onFull string) func(*admin.StreamSpec) {
	return func(s *admin.StreamSpec) { s.Queue = admin.Queue{Entries: entries, OnFull: onFull} }
}

// publish publishes records of 4 KiB one by one.
func (n *node) publish(c *client.Client, stream string, records int) {
	n.t.Helper()
	payload := make([]byte, 4<<10)
	for range records {
		if _, err := c.Publish(n.ctx(), streamOf(stream), client.Message{Payload: payload}); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *node) subscribe(c *client.Client, stream string, start client.Start) *client.Subscription {
	n.t.Helper()
	s, err := c.Subscribe(n.ctx(), streamOf(stream), client.SubscribeConfig{Start: start, NoReconnect: true})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = s.Close() })
	return s
}

// readToEnd reads until the subscription is over and says how.
func (n *node) readToEnd(s *client.Subscription) error {
	n.t.Helper()
	ctx := n.ctx()
	for {
		if _, err := s.Next(ctx); err != nil {
			if ctx.Err() != nil {
				n.t.Fatal("the subscription does not end")
			}
			return err
		}
	}
}

// readers are the subscriptions of a stream, the one furthest behind first.
func (n *node) readers(stream string) []admin.Subscription {
	n.t.Helper()
	l, err := n.http().Subscriptions(n.ctx(), admin.SubscriptionQuery{Stream: adminName(stream), Sort: admin.SortLag})
	if err != nil {
		n.t.Fatal(err)
	}
	return l.Subscriptions
}

// stateOf is what a stream's only reader is doing.
func (n *node) stateOf(stream string) string {
	n.t.Helper()
	l := n.readers(stream)
	if len(l) != 1 {
		n.t.Fatalf("%d readers of %s", len(l), stream)
	}
	return l[0].State
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// in says whether a file belongs to a stream.
func in(stream string) func(name string) bool {
	return func(name string) bool { return strings.Contains(name, "/"+stream+"/") }
}

// logged keeps the lines of a log at info and above.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (*logged) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (l *logged) WithGroup(string) slog.Handler              { return l }

// WithAttrs implements slog.Handler.
func (l *logged) WithAttrs(attrs []slog.Attr) slog.Handler { return &withAttrs{l, attrs} }

// Handle implements slog.Handler.
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// with are the lines that hold all of some texts.
func (l *logged) with(texts ...string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			out = append(out, line)
		}
	}
	return out
}

type withAttrs struct {
	*logged
	attrs []slog.Attr
}

// Handle implements slog.Handler.
func (w *withAttrs) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(w.attrs...)
	return w.logged.Handle(ctx, r)
}

// peer is a connection that speaks frames, for what the client library does not do.
type peer struct {
	t    *testing.T
	conn *quic.Conn
}

func (n *node) tryPeer(protos ...string) (*peer, error) {
	conn, err := quic.DialAddr(n.ctx(), n.broker.Addr().String(),
		&tls.Config{InsecureSkipVerify: true, NextProtos: protos, MinVersion: tls.VersionTLS13}, &quic.Config{})
	if err != nil {
		return nil, err
	}
	n.t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return &peer{n.t, conn}, nil
}

func (n *node) peer() *peer {
	n.t.Helper()
	p, err := n.tryPeer("felix/1")
	if err != nil {
		n.t.Fatal(err)
	}
	return p
}

// session is a client's stream.
type session struct {
	t      *testing.T
	s      *quic.Stream
	frames *frameio.Reader
	id     uint64
}

func (p *peer) open(first []byte) *session {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	s, err := p.conn.OpenStreamSync(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	k := &session{t: p.t, s: s, frames: frameio.NewReader(s, 0)}
	k.frames.SetLimit(wire.MaxPayload)
	k.write(first)
	return k
}

// auth opens a stream and authenticates; it returns what the broker said.
func (p *peer) auth(of, token string) (*session, wire.Message) {
	p.t.Helper()
	flags := wire.StandaloneFlags | wire.IdempotentFlags
	k := p.open(wire.AppendMessage(nil, &wire.Auth{
		TenantID: of, Token: token, ClientFlags: &flags, ClientFeatures: wire.StandaloneFeatures | wire.FeatureErrorCodes,
	}))
	_, m := k.next()
	return k, m
}

func (p *peer) session(token string) *session {
	p.t.Helper()
	k, m := p.auth(tenant, token)
	if _, ok := m.(*wire.AuthOK); !ok {
		p.t.Fatalf("auth: got %+v", m)
	}
	return k
}

func (k *session) write(b []byte) {
	k.t.Helper()
	_ = k.s.SetWriteDeadline(time.Now().Add(patience))
	if _, err := k.s.Write(b); err != nil {
		k.t.Fatalf("write: %v", err)
	}
}

// next reads an ack or a message.
func (k *session) next() (*wire.Ack, wire.Message) {
	k.t.Helper()
	_ = k.s.SetReadDeadline(time.Now().Add(patience))
	h, err := k.frames.Next()
	if err != nil {
		k.t.Fatalf("read frame: %v", err)
	}
	b, err := k.frames.Payload(h, nil)
	if err != nil {
		k.t.Fatalf("read payload: %v", err)
	}
	if h.Flags.Has(wire.FlagAck) {
		a, err := wire.DecodeAck(h.Flags, b)
		if err != nil {
			k.t.Fatal(err)
		}
		return &a, nil
	}
	m, err := wire.DecodeMessage(b)
	if err != nil {
		k.t.Fatal(err)
	}
	return nil, m
}

// send publishes one record of size bytes; a negative size is an empty batch.
func (k *session) send(stream string, size int, change ...func(*wire.Publish)) {
	k.t.Helper()
	k.id++
	p := &wire.Publish{
		Acked: true, RequestID: k.id, AckMode: wire.AckPerBatch,
		Tenant: []byte(tenant), Namespace: []byte("default"), Stream: []byte(stream),
	}
	if size >= 0 {
		p.Records = wire.Records{Count: 1, Bytes: wire.AppendRecord(nil, make([]byte, size))}
	}
	for _, f := range change {
		f(p)
	}
	k.write(wire.AppendPublish(nil, p))
}

// answer is what the next publish to be answered came to.
func (k *session) answer() string {
	k.t.Helper()
	switch a, m := k.next(); {
	case a != nil && a.OK:
		return "ok"
	case a != nil:
		return a.Code.String()
	default:
		if _, ok := m.(*wire.PublishRefused); !ok {
			k.t.Fatalf("got %+v", m)
		}
		return "refused"
	}
}

// try publishes one small record and says what came of it.
func (k *session) try(stream string, change ...func(*wire.Publish)) string {
	k.t.Helper()
	k.send(stream, 100, change...)
	return k.answer()
}
