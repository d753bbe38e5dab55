package peer

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/peer/pki"
)

// patience is how long a test waits for what must happen soon.
const patience = 20 * time.Second

// town is a cluster's CA and the addresses of its nodes.
type town struct {
	t    *testing.T
	ca   string
	mu   sync.Mutex
	addr map[string]string
}

func newTown(t *testing.T) *town {
	t.Helper()
	d := &town{t: t, ca: t.TempDir(), addr: map[string]string{}}
	if err := pki.CreateCA(d.ca, time.Now()); err != nil {
		t.Fatal(err)
	}
	return d
}

// certify makes a certificate for a name.
func (d *town) certify(name string) *pki.Files {
	d.t.Helper()
	dir := filepath.Join(d.t.TempDir(), "certs")
	if err := pki.Issue(d.ca, dir, name, time.Now()); err != nil {
		d.t.Fatal(err)
	}
	return open(d.t, dir)
}

func open(t *testing.T, dir string) *pki.Files {
	t.Helper()
	f, err := pki.Open(pki.In(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (d *town) resolve(node string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	addr, ok := d.addr[node]
	return addr, ok
}

func (d *town) moved(node, addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr[node] = addr
}

// config is that of a node with its own certificate.
func (d *town) config(node string) Config {
	files := d.certify(node)
	return Config{
		NodeID: node, Listen: "127.0.0.1:0", Certificate: files.Certificate, CAs: files.CAs, Resolve: d.resolve,
		Cluster: func() string { return "c1" },
	}
}

// node starts one that serves, and is known by its address.
func (d *town) node(node string, change ...func(*Config)) *Transport {
	d.t.Helper()
	cfg := d.config(node)
	for _, c := range change {
		c(&cfg)
	}
	t := d.listen(cfg)
	t.Serve()
	return t
}

func (d *town) listen(cfg Config) *Transport {
	d.t.Helper()
	t, err := Listen(d.t.Context(), cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := t.Close(); err != nil {
			d.t.Errorf("close %s: %v", cfg.NodeID, err)
		}
	})
	d.moved(cfg.NodeID, t.Addr().String())
	return t
}

// echo sends back what comes.
func echo(_ context.Context, c *Conn) {
	defer c.Close()
	_, _ = io.Copy(c, c)
}

// logBuffer is where a test finds what was logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within time: " + what)
		}
	}
}

func count(t *Transport) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) + t.incoming + len(t.by) + len(t.greeting)
}

func connsOf(t *Transport) (conns []*Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		conns = append(conns, c)
	}
	return conns
}

// wantEnd waits for the other side to close, and gives what it said before.
func wantEnd(t *testing.T, c net.Conn) []byte {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if isTimeout(err) {
		t.Error("the connection stays open")
	}
	return text
}

// send writes to one that may close the connection before all of it is written.
func send(c net.Conn, text string) { _, _ = io.WriteString(c, text) }
