package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

const (
	testTenant = "t1"
	testWait   = 10 * time.Second
)

// harness is a server on 127.0.0.1 with streams that the test makes.
type harness struct {
	t      *testing.T
	server *Server
	dir    *fakeDirectory
	auth   *fakeAuth
	engine *egress.Engine
	cert   SelfSigned
	once   sync.Once
}

// certificates are made once: a key costs more than most tests.
var certificates = sync.OnceValues(func() (tls.Certificate, error) {
	cert, key, err := makeSelfSigned([]string{"localhost", "127.0.0.1"}, time.Now())
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
})

func start(t *testing.T, change func(*Config)) *harness {
	t.Helper()
	return startWith(t, egress.Config{}, change)
}

func startWith(t *testing.T, out egress.Config, change func(*Config)) *harness {
	t.Helper()
	pair, err := certificates()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := egress.New(out)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, dir: newFakeDirectory(), auth: newFakeAuth(), engine: engine}
	cfg := Config{
		Addr:        "127.0.0.1:0",
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		Auth:        h.auth, Directory: h.dir, Egress: engine,
	}
	if change != nil {
		change(&cfg)
	}
	if h.server, err = Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	return h
}

// stop shuts down in the order that the broker does.
func (h *harness) stop() {
	h.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		h.dir.release()
		if err := h.server.Drain(ctx); err != nil {
			h.t.Error(err)
		}
		h.dir.close(ctx, h.t)
		h.server.Close(ctx)
		h.engine.Close()
	})
}

// fakeDirectory is a set of streams.
type fakeDirectory struct {
	generation atomic.Uint64

	mu      sync.Mutex
	streams map[stream.Name]*stream.Stream
	logs    []*heldLog
	refused map[stream.Name]*stream.Error
	brokers []wire.Broker
}

func newFakeDirectory() *fakeDirectory {
	return &fakeDirectory{streams: make(map[stream.Name]*stream.Stream), refused: make(map[stream.Name]*stream.Error)}
}

func (d *fakeDirectory) Generation() uint64 { return d.generation.Load() }

func (d *fakeDirectory) Brokers() []wire.Broker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.brokers
}

// shardsOf are the shards of a stream that are here.
func shardsOf(st *stream.Stream) []*stream.Shard {
	var here []*stream.Shard
	for _, p := range st.Places() {
		if s, _ := p.Here(); s != nil {
			here = append(here, s)
		}
	}
	return here
}

func (d *fakeDirectory) Stream(n stream.Name) (*stream.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.refused[n]; e != nil {
		return nil, e
	}
	if st := d.streams[n]; st != nil {
		return st, nil
	}
	return nil, refuse(wire.CodeNotFound, "there is no stream %s", n)
}

func streamName(name string) stream.Name {
	return stream.Name{Tenant: testTenant, Namespace: "default", Stream: name}
}

// memory makes a memory stream of n shards.
func (h *harness) memory(name string, n int, change func(*stream.Config)) *stream.Stream {
	h.t.Helper()
	return h.add(name, n, change, nil)
}

// held makes a stream of one shard whose commits wait for release.
func (h *harness) held(name string) *heldLog {
	h.t.Helper()
	l := newHeldLog()
	h.add(name, 1, nil, func(hooks stream.Hooks) (stream.Log, error) {
		l.hooks = hooks
		return l, nil
	})
	h.dir.mu.Lock()
	h.dir.logs = append(h.dir.logs, l)
	h.dir.mu.Unlock()
	return l
}

func (h *harness) add(name string, n int, change func(*stream.Config), open func(stream.Hooks) (stream.Log, error)) *stream.Stream {
	h.t.Helper()
	var places []stream.Place
	for i := range n {
		cfg := stream.Config{Name: streamName(name), Shard: uint32(i)}
		if change != nil {
			change(&cfg)
		}
		s, err := stream.Open(cfg, open)
		if err != nil {
			h.t.Fatal(err)
		}
		places = append(places, s)
	}
	st := stream.NewStream(streamName(name), "1", stream.Memory, wire.RoutingModulo, places)
	h.dir.mu.Lock()
	h.dir.streams[st.Name] = st
	h.dir.mu.Unlock()
	h.dir.generation.Add(1)
	return st
}

// remove deletes a stream as the broker does.
func (h *harness) remove(name string) {
	h.t.Helper()
	h.dir.mu.Lock()
	st := h.dir.streams[streamName(name)]
	delete(h.dir.streams, streamName(name))
	h.dir.mu.Unlock()
	h.dir.generation.Add(1)
	for _, s := range shardsOf(st) {
		if err := errors.Join(s.Close(h.t.Context(), stream.EndDeleted), s.CloseLog()); err != nil {
			h.t.Error(err)
		}
	}
}

func (d *fakeDirectory) release() {
	d.mu.Lock()
	logs := d.logs
	d.mu.Unlock()
	for _, l := range logs {
		l.release()
	}
}

func (d *fakeDirectory) close(ctx context.Context, t *testing.T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, st := range d.streams {
		for _, s := range shardsOf(st) {
			if err := s.Close(ctx, stream.EndShutdown); err != nil {
				t.Error(err)
			}
			if err := s.CloseLog(); err != nil {
				t.Error(err)
			}
		}
	}
}

// heldLog keeps nothing and commits when it is told to: a quorum that does not form.
type heldLog struct {
	hooks stream.Hooks
	kick  chan struct{} // capacity 1
	done  sync.WaitGroup

	mu       sync.Mutex
	next     uint64
	released bool
}

func newHeldLog() *heldLog {
	l := &heldLog{kick: make(chan struct{}, 1)}
	l.done.Go(func() {
		committed := uint64(0)
		for range l.kick {
			l.mu.Lock()
			next, released := l.next, l.released
			l.mu.Unlock()
			if released && next > committed {
				committed = next
				l.hooks.Committed(next, nil)
			}
		}
	})
	return l
}

func (l *heldLog) signal() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *heldLog) Append(rs []seglog.Record) error {
	l.mu.Lock()
	for _, r := range rs {
		l.next += uint64(r.Count)
	}
	l.mu.Unlock()
	l.signal()
	return nil
}

// release commits everything, now and from now on.
func (l *heldLog) release() {
	l.mu.Lock()
	l.released = true
	l.mu.Unlock()
	l.signal()
}

// hold undoes release.
func (l *heldLog) hold() {
	l.mu.Lock()
	l.released = false
	l.mu.Unlock()
}

func (l *heldLog) appended() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

func (l *heldLog) Reader(from uint64) stream.Reader { return heldReader{l, from} }

// heldReader finds nothing: what was committed is in the ring.
type heldReader struct {
	l    *heldLog
	from uint64
}

func (r heldReader) Seek(uint64) {}

func (r heldReader) Read(uint64, int, []byte) (seglog.Page, error) {
	return seglog.Page{}, &seglog.TooOldError{Requested: r.from, Oldest: r.l.Next()}
}

func (l *heldLog) Next() uint64        { return l.appended() }
func (l *heldLog) Oldest() uint64      { return 0 }
func (l *heldLog) Stats() seglog.Stats { return seglog.Stats{} }

// Close waits for the committer; nothing is appended any more.
func (l *heldLog) Close() error {
	close(l.kick)
	l.done.Wait()
	return nil
}

// fakeAuth accepts the token "good" for the tenant with all permissions, and
// "reader" and "writer" with one each.
type fakeAuth struct {
	checks atomic.Int64
	tokens map[string]*auth.Principal
}

func newFakeAuth() *fakeAuth {
	const all = ":stream:t1/*"
	return &fakeAuth{tokens: map[string]*auth.Principal{
		"good":   auth.NewPrincipal("alice", testTenant, []string{"stream.publish" + all, "stream.subscribe" + all}),
		"reader": auth.NewPrincipal("rita", testTenant, []string{"stream.subscribe" + all}),
		"writer": auth.NewPrincipal("will", testTenant, []string{"stream.publish:stream:t1/default/open-*"}),
	}}
}

func (a *fakeAuth) Verify(ctx context.Context, tenant, token string) (*auth.Principal, error) {
	a.checks.Add(1)
	if token == "hang" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if p := a.tokens[token]; p != nil && tenant == p.Tenant {
		return p, nil
	}
	return nil, &auth.Error{Reason: auth.ReasonSignature}
}

// eventually polls until ok, and fails the test after a while.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(testWait)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", testWait, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// logLines counts log records by level.
type logLines struct {
	slog.Handler

	mu    sync.Mutex
	lines []slog.Record
}

func newLogLines() *logLines { return &logLines{Handler: slog.DiscardHandler} }

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r)
	return nil
}

func (l *logLines) count(level slog.Level) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.lines {
		if r.Level == level {
			n++
		}
	}
	return n
}

func selfSignedIn(t *testing.T) SelfSigned {
	t.Helper()
	s, err := EnsureSelfSigned(filepath.Join(t.TempDir(), "tls"), []string{"broker.example"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
