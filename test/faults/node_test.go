package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/server"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/client"
)

const (
	tenant    = "t1"
	namespace = "default"
)

// identity is what all brokers of a test run have in common: a certificate, and a key
// for tokens. Making them costs more than most tests.
type identity struct {
	dir, cert, key, jwks, token string
}

var identities = sync.OnceValues(func() (*identity, error) {
	dir, err := os.MkdirTemp("", "felix-faults-")
	if err != nil {
		return nil, err
	}
	id := &identity{dir: dir, jwks: filepath.Join(dir, "jwks.json")}
	made, err := server.EnsureSelfSigned(dir, nil, time.Now())
	if err != nil {
		return nil, err
	}
	id.cert, id.key = made.CertFile, made.KeyFile
	key, err := auth.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	set, err := auth.NewKeySet(key.Public())
	if err != nil {
		return nil, err
	}
	if err := auth.WriteJWKS(vfs.OS, id.jwks, set); err != nil {
		return nil, err
	}
	all := ":stream:" + tenant + "/*"
	id.token, err = auth.Mint(key, auth.Claims{
		Subject: "tester", Tenant: tenant, IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
		Permissions: []string{"stream.publish" + all, "stream.subscribe" + all, "stream.manage" + all},
	})
	return id, err
})

func theIdentity(t *testing.T) *identity {
	t.Helper()
	id, err := identities()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// node is a broker and how to get at it, whichever process it is in.
type node struct {
	t     *testing.T
	id    *identity
	cfg   broker.Config
	addr  string // of the QUIC listener
	admin string // of the HTTP listener

	running *broker.Broker // in this process
}

// newConfig is the configuration that tests begin with.
func newConfig(t *testing.T, change ...func(*broker.Config)) broker.Config {
	t.Helper()
	id := theIdentity(t)
	cfg := broker.Config{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", NodeID: "n1",
		TLS:   broker.TLS{CertFile: id.cert, KeyFile: id.key},
		Auth:  broker.Auth{Keys: map[string]string{tenant: id.jwks}},
		Admin: broker.Admin{Listen: "127.0.0.1:0"},
	}
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// startNode starts a broker in this process.
func startNode(t *testing.T, change ...func(*broker.Config)) *node {
	t.Helper()
	n := &node{t: t, id: theIdentity(t), cfg: newConfig(t, change...)}
	n.start()
	t.Cleanup(n.stop)
	return n
}

// start starts the broker, at the addresses that it had before.
func (n *node) start() {
	n.t.Helper()
	b, err := broker.Start(bounded(n.t), n.cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.running = b
	n.addr, n.admin = b.Addr().String(), b.AdminAddr().String()
	n.cfg.Listen, n.cfg.Admin.Listen = n.addr, n.admin
}

// stop shuts the broker down, if it runs.
func (n *node) stop() {
	n.t.Helper()
	if n.running == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	if err := n.running.Shutdown(ctx); err != nil {
		n.t.Errorf("shut down: %v", err)
	}
	n.running = nil
}

// dial connects a client that is closed with the test.
func (n *node) dial(change ...func(*client.Config)) *client.Client {
	n.t.Helper()
	cfg := n.clientConfig()
	for _, f := range change {
		f(&cfg)
	}
	c, err := client.Dial(bounded(n.t), cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			n.t.Errorf("close client: %v", err)
		}
	})
	return c
}

func (n *node) clientConfig() client.Config {
	return client.Config{
		Addrs: []string{n.addr}, Tenant: tenant, Token: n.id.token, CAFile: n.id.cert,
		// A machine that is busy with other tests is no fault.
		DialTimeout: testWait / 4, RequestTimeout: testWait / 2, PublishTimeout: testWait, IdleTimeout: 30 * time.Second,
	}
}

// window gives a client receive windows of n bytes a stream.
func window(n uint64) func(*client.Config) {
	return func(c *client.Config) { c.StreamWindow = n }
}

// byDefault gives a client the times that it has if nothing is said about them.
func byDefault(c *client.Config) {
	c.DialTimeout, c.RequestTimeout, c.PublishTimeout, c.IdleTimeout = 0, 0, 0, 0
}

// via sends a client through a proxy.
func via(p *proxy) func(*client.Config) {
	return func(c *client.Config) { c.Addrs = []string{p.addr()} }
}

// http is the admin port.
func (n *node) http() *admin.Client {
	return &admin.Client{BaseURL: "http://" + n.admin, Token: n.id.token, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

func adminName(stream string) admin.Name {
	return admin.Name{Tenant: tenant, Namespace: namespace, Stream: stream}
}

func streamOf(name string) client.Stream { return client.Stream{Namespace: namespace, Name: name} }

// create makes a stream.
func (n *node) create(name string, change ...func(*admin.StreamSpec)) client.Stream {
	n.t.Helper()
	spec := admin.StreamSpec{Name: adminName(name)}
	for _, f := range change {
		f(&spec)
	}
	if _, _, err := n.http().CreateStream(bounded(n.t), spec, ""); err != nil {
		n.t.Fatal(err)
	}
	return streamOf(name)
}

func memory(s *admin.StreamSpec) { s.Durability = "Memory" }

// queue bounds the lag of a stream's subscriptions.
func queue(entries int, bytes int64, onFull string) func(*admin.StreamSpec) {
	return func(s *admin.StreamSpec) { s.Queue = admin.Queue{Entries: entries, Bytes: bytes, OnFull: onFull} }
}

func (n *node) remove(name string) {
	n.t.Helper()
	if err := n.http().DeleteStream(bounded(n.t), adminName(name)); err != nil {
		n.t.Fatal(err)
	}
}

// shard shows shard 0 of a stream.
func (n *node) shard(name string) admin.Shard {
	n.t.Helper()
	s, err := n.http().Stream(bounded(n.t), adminName(name))
	if err != nil {
		n.t.Fatal(err)
	}
	return s.Shards[0]
}

// subscriptions are the readers of a stream, by id.
func (n *node) subscriptions(name string) []admin.Subscription {
	n.t.Helper()
	l, err := n.http().Subscriptions(bounded(n.t), admin.SubscriptionQuery{Stream: adminName(name)})
	if err != nil {
		n.t.Fatal(err)
	}
	return l.Subscriptions
}

// metrics is one scrape: by name and labels as they stand in the text, like
// `felix_subscriptions{state="live"}`.
func (n *node) metrics() map[string]float64 {
	n.t.Helper()
	req, err := http.NewRequestWithContext(bounded(n.t), http.MethodGet, "http://"+n.admin+"/metrics", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := n.http().HTTP.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		line := s.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			n.t.Fatalf("metrics line %q: %v", line, err)
		}
		out[line[:i]] = v
	}
	return out
}

// sum adds up a metric over its labels; some restrict it to series with that text. A
// metric of which there is no series at all is misspelt, unless it is about streams.
func sum(metrics map[string]float64, name string, some ...string) (total float64) {
	known := strings.HasPrefix(name, "felix_stream_") || strings.HasPrefix(name, "felix_subscription_")
	defer func() {
		if !known {
			panic("there is no metric " + name)
		}
	}()
	for series, v := range metrics {
		if base, _, _ := strings.Cut(series, "{"); base != name {
			continue
		}
		known = true
		matches := true
		for _, s := range some {
			matches = matches && strings.Contains(series, s)
		}
		if matches {
			total += v
		}
	}
	return total
}

// publisher makes a publisher that is closed with its client.
func publisher(t *testing.T, c *client.Client, s client.Stream, change ...func(*client.PublisherConfig)) *client.Publisher {
	t.Helper()
	var cfg client.PublisherConfig
	for _, f := range change {
		f(&cfg)
	}
	p, err := c.NewPublisher(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// single sends each record in a frame of its own.
func single(c *client.PublisherConfig) { c.MaxBatchRecords = 1 }

// subscribe begins to read.
func subscribe(t *testing.T, c *client.Client, s client.Stream, cfg client.SubscribeConfig) *client.Subscription {
	t.Helper()
	sub, err := c.Subscribe(bounded(t), s, cfg)
	if err != nil {
		t.Fatal(fmt.Errorf("subscribe to %s: %w", s, err))
	}
	return sub
}
