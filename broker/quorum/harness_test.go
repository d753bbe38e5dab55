package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/peer/faultnet"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wal"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// fast are the timings of tests: as fast as a busy machine can do.
var fast = Timings{Heartbeat: 500 * time.Millisecond, Election: 500 * time.Millisecond, Lease: 500 * time.Millisecond, Commit: 250 * time.Millisecond}

// calm is for tests that hold a leader to stay: the machine they run on is slow at times.
func calm(cfg *NodeConfig) {
	cfg.Timings = Timings{Heartbeat: 2 * time.Second, Election: 2 * time.Second, Lease: 2 * time.Second, Commit: 250 * time.Millisecond}
}

// cluster is some brokers of one test with one group, unless it opens more.
type cluster struct {
	t      testing.TB
	nw     *faultnet.Network
	ca     string
	hosts  []*host
	world  *world
	tune   func(*NodeConfig)
	first  []Server // the group's
	direct bool     // no faults, and no cost of them
}

// host is one broker.
type host struct {
	c       *cluster
	name    string
	life    int // of its volume
	disk    *faultfs.FS
	certs   *pki.Files
	peer    *peer.Transport
	log     *wal.Log
	node    *Node
	group   *Group
	machine *machine

	open atomic.Pointer[Group] // group, for those who don't run the test
}

func newCluster(t testing.TB, n int, tune func(*NodeConfig)) *cluster {
	t.Helper()
	c := prepare(t, n, tune)
	c.begin()
	return c
}

// prepare makes a cluster that does not run yet.
func prepare(t testing.TB, n int, tune func(*NodeConfig)) *cluster {
	t.Helper()
	c := &cluster{t: t, nw: faultnet.New(t, 0), ca: t.TempDir(), world: newWorld(t), tune: tune}
	if err := pki.CreateCA(c.ca, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range n {
		h := c.add()
		c.first = append(c.first, h.self())
	}
	return c
}

func (c *cluster) begin() {
	c.t.Helper()
	for _, h := range c.hosts {
		h.start()
		h.join(c.first)
	}
}

// add makes a host that is not started.
func (c *cluster) add() *host {
	c.t.Helper()
	h := &host{c: c, name: "n" + strconv.Itoa(len(c.hosts)+1), disk: faultfs.New(1)}
	dir := filepath.Join(c.t.TempDir(), "certs")
	if err := pki.Issue(c.ca, dir, h.name, time.Now()); err != nil {
		c.t.Fatal(err)
	}
	var err error
	if h.certs, err = pki.Open(pki.In(dir), nil); err != nil {
		c.t.Fatal(err)
	}
	c.hosts = append(c.hosts, h)
	c.t.Cleanup(h.stop)
	return h
}

func (h *host) self() Server { return Server{Node: h.name, Instance: "i" + strconv.Itoa(h.life)} }

func (h *host) config() NodeConfig {
	cfg := NodeConfig{
		Self: h.self(), Dir: "/data/quorum", FS: h.disk, State: FileState(h.disk), WAL: h.log, Peer: h.peer, Timings: fast,
	}
	if os.Getenv("FELIX_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", h.name)
	}
	if h.c.tune != nil {
		h.c.tune(&cfg)
	}
	return cfg
}

// start starts the broker with what is on its disk, without groups.
func (h *host) start() {
	h.c.t.Helper()
	view := h.c.nw.Node(h.name)
	dial := view.Dial
	if h.c.direct {
		dial = nil
	}
	var err error
	h.peer, err = peer.Listen(h.c.t.Context(), peer.Config{
		NodeID: h.name, Listen: "127.0.0.1:0", Certificate: h.certs.Certificate, CAs: h.certs.CAs,
		Resolve: view.Resolve, DialNet: dial,
	})
	if err != nil {
		h.c.t.Fatal(err)
	}
	view.SetAddr(h.peer.Addr().String())
	var node atomic.Pointer[Node]
	h.log, _, err = wal.Open(wal.Config{FS: h.disk, Dir: "/data/wal", FileBytes: 4 << 20, MaxBytes: 32 << 20, Pressure: func(keys []string) {
		if n := node.Load(); n != nil {
			n.Pressure(keys)
		}
	}})
	if err != nil {
		h.c.t.Fatal(err)
	}
	if h.node, err = NewNode(h.config()); err != nil {
		h.c.t.Fatal(err)
	}
	node.Store(h.node)
	h.peer.Serve()
}

// join opens the group.
func (h *host) join(bootstrap []Server) {
	h.c.t.Helper()
	h.machine = h.c.world.machine(h.self())
	var err error
	h.group, err = h.node.Open(h.c.t.Context(), 1, GroupConfig{Machine: h.machine, Bootstrap: bootstrap, OnLeader: h.machine.led})
	if err != nil {
		h.c.t.Fatal(err)
	}
	h.open.Store(h.group)
}

// leading is some group that leads, if one does.
func (c *cluster) leading(from int) *Group {
	for i := range c.hosts {
		if g := c.hosts[(from+i)%len(c.hosts)].open.Load(); g != nil && g.State().Leading {
			return g
		}
	}
	return nil
}

func (h *host) up() bool { return h.node != nil }

// stop ends the broker in order.
func (h *host) stop() { h.end(patience) }

// kill ends it as far as others see: nothing of it gets out any more.
func (h *host) kill() {
	h.c.nw.Isolate(h.name)
	for _, o := range h.c.hosts {
		if o != h {
			h.c.nw.Reset(h.name, o.name)
		}
	}
	h.end(patience)
	h.c.nw.Rejoin(h.name)
}

func (h *host) end(within time.Duration) {
	if h.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := errors.Join(h.node.Close(ctx), h.peer.Close(), h.log.Close()); err != nil {
		h.c.t.Errorf("%s: close: %v", h.name, err)
	}
	h.node, h.group = nil, nil
}

// restart starts it again with its disk.
func (h *host) restart() {
	h.c.t.Helper()
	h.start()
	h.join(nil)
}

// wipe has it come back with an empty disk.
func (h *host) wipe() {
	h.life++
	h.disk = faultfs.New(1)
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// leader waits until one of the hosts leads and is ready.
func (c *cluster) leader(among ...*host) *host {
	c.t.Helper()
	if among == nil {
		among = c.hosts
	}
	var found *host
	until(c.t, "a leader", func() bool {
		for _, h := range among {
			if h.up() && h.group != nil && h.group.State().Leading {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				err := h.group.Ready(ctx)
				cancel()
				if err == nil {
					found = h
					return true
				}
			}
		}
		return false
	})
	return found
}

func (c *cluster) others(than ...*host) []*host {
	return slices.DeleteFunc(slices.Clone(c.hosts), func(h *host) bool { return slices.Contains(than, h) })
}

// put proposes until it is applied, at whoever leads of the hosts.
func (c *cluster) put(text string, among ...*host) *host {
	c.t.Helper()
	var by *host
	until(c.t, "an entry to be applied", func() bool {
		by = c.leader(among...)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := by.group.Propose([]byte(text)).Wait(ctx)
		return err == nil
	})
	return by
}

// settled waits until all hosts have applied the same, and everything.
func (c *cluster) settled(hosts ...*host) {
	c.t.Helper()
	if hosts == nil {
		hosts = c.hosts
	}
	defer func() {
		if c.t.Failed() {
			c.t.Log(c)
		}
	}()
	until(c.t, "all to have applied the same", func() bool {
		var want uint64
		for _, h := range hosts {
			want = max(want, h.group.State().Last)
		}
		for _, h := range hosts {
			if s := h.group.State(); s.Commit < want || s.Last != want || h.machine.state() != hosts[0].machine.state() {
				return false
			}
		}
		return true
	})
}

func (c *cluster) String() string {
	text := ""
	for _, h := range c.hosts {
		if h.up() && h.group != nil {
			text += fmt.Sprintf("%s: %+v, machine %s\n", h.name, h.group.State(), h.machine.state())
		}
	}
	return text
}
