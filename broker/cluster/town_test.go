package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/peer/faultnet"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wal"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// town is where brokers of a test live: a network, a CA and stable names.
type town struct {
	t     *testing.T
	net   *faultnet.Network
	certs string
	times quorum.Timings

	mu    sync.Mutex
	names map[string]string // address by stable name
}

func newTown(t *testing.T) *town {
	t.Helper()
	t.Parallel() // most of the time it waits
	w := &town{t: t, net: faultnet.New(t, 0), certs: t.TempDir(), names: make(map[string]string), times: quorum.Timings{Commit: 100 * time.Millisecond}}
	if err := pki.CreateCA(w.certs, time.Now()); err != nil {
		t.Fatal(err)
	}
	return w
}

// dial knows the stable names, which it looks up each time, as a resolver does.
func (w *town) dial(node string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		w.mu.Lock()
		if at, ok := w.names[addr]; ok {
			addr = at
		}
		w.mu.Unlock()
		return w.net.Node(node).Dial(ctx, addr)
	}
}

// house is a broker's place: its data directory outlives the broker.
type house struct {
	w        *town
	node     string
	instance string
	dir      string
	numbered bool // it registers its number instead of its name

	cluster  *Cluster
	machines *machines
	stop     func()
}

func (w *town) house(node string) *house {
	return &house{w: w, node: node, instance: newInstance(), dir: w.t.TempDir()}
}

func newInstance() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// wipe empties the data directory.
func (h *house) wipe() {
	h.instance, h.dir = newInstance(), h.w.t.TempDir()
}

func (h *house) name() string { return h.node + ".test:1" }

// open makes the broker, without starting it.
func (h *house) open(change ...func(*Config)) error {
	t := h.w.t
	t.Helper()
	certs := filepath.Join(t.TempDir(), "certs")
	if err := pki.Issue(h.w.certs, certs, h.node, time.Now()); err != nil {
		t.Fatal(err)
	}
	files, err := pki.Open(pki.In(certs), nil)
	if err != nil {
		t.Fatal(err)
	}
	book, err := OpenBook(vfs.OS, h.dir)
	if err != nil {
		return err
	}
	log := testLog(t, h.node)
	tr, err := peer.Listen(t.Context(), peer.Config{
		NodeID: h.node, Listen: "127.0.0.1:0", Certificate: files.Certificate, CAs: files.CAs, Cluster: book.Cluster, Resolve: book.Resolve,
		DialNet: h.w.dial(h.node), Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := tr.Addr().String()
	h.w.net.Node(h.node).SetAddr(addr)
	h.w.mu.Lock()
	h.w.names[h.name()] = addr
	h.w.mu.Unlock()
	l, _, err := wal.Open(wal.Config{Dir: filepath.Join(h.dir, "wal"), FileBytes: 1 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	self := quorum.Server{Node: h.node, Instance: h.instance}
	node, err := quorum.NewNode(quorum.NodeConfig{
		Self: self, Dir: filepath.Join(h.dir, "groups"), WAL: l, Peer: tr, Log: log,
		Timings: h.w.times,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.machines = &machines{by: make(map[uint32]*sum)}
	cfg := Config{
		Self: self, Broker: catalog.Broker{Peer: h.name()}, Book: book, Settings: catalog.Settings{Groups: 3}, Peer: tr, Node: node,
		NewMachine: h.machines.make, Stopped: h.machines.stopped, Log: log,
		Timings: Timings{
			Exchange: 400 * time.Millisecond, Retry: 100 * time.Millisecond, Call: time.Second, Change: 5 * time.Second, Propose: 5 * time.Second, Settle: 500 * time.Millisecond,
		},
	}
	if h.numbered {
		cfg.Broker.Peer = addr
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	h.cluster = c
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var errs []error
			if c != nil {
				errs = append(errs, c.Close(ctx))
			}
			errs = append(errs, node.Close(ctx), tr.Close(), l.Close())
			if err := errors.Join(errs...); err != nil {
				t.Errorf("%s: close: %v", h.node, err)
			}
		})
	}
	t.Cleanup(h.stop)
	if err != nil {
		h.stop()
		return err
	}
	tr.Serve()
	return nil
}

// start opens the broker and starts it, within a time.
func (h *house) start(within time.Duration, change ...func(*Config)) error {
	h.w.t.Helper()
	if err := h.open(change...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.w.t.Context(), within)
	defer cancel()
	return h.cluster.Start(ctx)
}

func founds(c *Config) { c.Found = true }

func joins(others ...*house) func(*Config) {
	return func(c *Config) {
		for _, h := range others {
			c.Join = append(c.Join, h.name())
		}
	}
}

// must start a broker.
func (h *house) must(change ...func(*Config)) *house {
	h.w.t.Helper()
	if err := h.start(patience, change...); err != nil {
		h.w.t.Fatalf("%s: %v", h.node, err)
	}
	return h
}

// calm has groups elect late: for tests that hold a leader to stay, while the machine may be busy.
func (w *town) calm() {
	w.times.Heartbeat, w.times.Election, w.times.Lease = 3*time.Second, 3*time.Second, 3*time.Second
}

// found makes a cluster of brokers a, b, c and so on, and waits until it is whole.
func (w *town) found(n int, change ...func(*Config)) []*house {
	w.t.Helper()
	all := []*house{w.house("a").must(append(change, founds)...)}
	for i := 1; i < n; i++ {
		all = append(all, w.house(string(rune('a'+i))).must(append(change, joins(all[0]))...))
	}
	w.balanced(all...)
	return all
}

// balanced is whole, without waiting for the cluster to balance itself.
func (w *town) balanced(all ...*house) {
	w.t.Helper()
	w.until("the cluster is whole", func() error {
		return errors.Join(all[0].cluster.Balance(w.t.Context()), isWhole(w.t.Context(), all))
	})
}

// until waits until a condition holds.
func (w *town) until(what string, is func() error) {
	w.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	w.t.Fatalf("%s: %v", what, err)
}

// whole waits until these brokers are all that the cluster has, and every group is
// where it is to be, led by who should lead it.
func (w *town) whole(all ...*house) {
	w.t.Helper()
	w.until("the cluster is whole", func() error { return isWhole(w.t.Context(), all) })
}

func isWhole(ctx context.Context, all []*house) error {
	for _, h := range all {
		s := h.cluster.Status(ctx)
		if len(s.Brokers) != len(all) {
			return fmt.Errorf("%s has %d brokers", h.node, len(s.Brokers))
		}
		for _, b := range s.Brokers {
			if !b.InSync || len(all) >= 3 && !b.CanStop {
				return fmt.Errorf("%s says that %s is not in sync: %q", h.node, b.NodeID, b.Because)
			}
		}
		for _, g := range s.Groups {
			voters := 0
			for _, m := range g.Members {
				if m.Voter {
					voters++
				}
			}
			if g.Next != "" || g.Leader != g.Target[0] || voters != len(g.Target) || len(g.Target) < min(3, len(all)) {
				return fmt.Errorf("%s says of group %d: leader %q, target %v, %d voters, next %q", h.node, g.ID, g.Leader, g.Target, voters, g.Next)
			}
		}
		if s.Problem != "" || h.cluster.State().Version() != all[0].cluster.State().Version() {
			return fmt.Errorf("%s: %s, version %d", h.node, s.Problem, h.cluster.State().Version())
		}
	}
	return nil
}

// add has the leader of a group, wherever it is, count something.
func add(ctx context.Context, all []*house, group uint32) error {
	err := errors.New("nobody leads")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, h := range all {
			if g, ok := h.cluster.Group(group); ok && g.State().Leading {
				// Anything but a refusal ends it: what may have been counted is not counted again.
				if _, err = g.Propose([]byte{1}).Wait(ctx); !errors.Is(err, quorum.ErrNotLeader) {
					return err
				}
			}
		}
	}
	return err
}

// testLog shows the brokers' logs when FELIX_LOG is set.
func testLog(t *testing.T, node string) *slog.Logger {
	level := slog.LevelDebug
	switch os.Getenv("FELIX_LOG") {
	case "":
		return slog.New(slog.DiscardHandler)
	case "info":
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})).With("at", node)
}

func errAt(h *house, format string, args ...any) error {
	return fmt.Errorf("%s "+format, append([]any{h.node}, args...)...)
}
