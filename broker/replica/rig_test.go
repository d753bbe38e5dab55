package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/peer/faultnet"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wal"
	"felix.dev/felix/broker/wire"
)

// rig is three brokers with a group each over raft and a network that fails.
type rig struct {
	t     testing.TB
	nw    *faultnet.Network
	ca    string
	hosts []*host
	first []quorum.Server
	tune  func(*quorum.NodeConfig, *Config)
}

type host struct {
	r     *rig
	name  string
	fs    vfs.FS
	fault *faultfs.FS
	dir   string
	certs *pki.Files

	peer    *peer.Transport
	log     *wal.Log
	node    *quorum.Node
	fetches *Fetches
	g       atomic.Pointer[Group] // nil: it is down
	q       *quorum.Group
}

// fast are the timings of tests: as fast as a busy machine can do.
var fast = quorum.Timings{Heartbeat: 500 * time.Millisecond, Election: 500 * time.Millisecond, Lease: 500 * time.Millisecond, Commit: 250 * time.Millisecond}

// calm is for tests that hold a leader to stay.
func calm(n *quorum.NodeConfig, _ *Config) {
	const late = 2 * time.Second
	n.Timings = quorum.Timings{Heartbeat: late, Election: late, Lease: late, Commit: fast.Commit}
}

// newRig starts brokers on disks in memory, or under dir if that is given.
func newRig(t testing.TB, n int, dir string, tune func(*quorum.NodeConfig, *Config)) *rig {
	t.Helper()
	r := &rig{t: t, nw: faultnet.New(t, 0), ca: t.TempDir(), tune: tune}
	if err := pki.CreateCA(r.ca, time.Now()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		h := &host{r: r, name: fmt.Sprint("n", i+1), dir: "/data"}
		if dir != "" {
			h.fs, h.dir = vfs.OS, filepath.Join(dir, h.name)
		} else {
			h.fault = faultfs.New(uint64(i))
			h.fs = h.fault
		}
		certs := t.TempDir()
		if err := pki.Issue(r.ca, certs, h.name, time.Now()); err != nil {
			t.Fatal(err)
		}
		var err error
		if h.certs, err = pki.Open(pki.In(certs), nil); err != nil {
			t.Fatal(err)
		}
		r.hosts = append(r.hosts, h)
		r.first = append(r.first, h.self())
		t.Cleanup(h.stop)
	}
	for _, h := range r.hosts {
		h.start()
	}
	return r
}

func (h *host) self() quorum.Server { return quorum.Server{Node: h.name, Instance: "i0"} }

func (h *host) start() {
	t := h.r.t
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var log *slog.Logger
	if os.Getenv("FELIX_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", h.name)
	}
	view := h.r.nw.Node(h.name)
	var err error
	h.peer, err = peer.Listen(t.Context(), peer.Config{
		NodeID: h.name, Listen: "127.0.0.1:0", Certificate: h.certs.Certificate, CAs: h.certs.CAs, Resolve: view.Resolve, DialNet: view.Dial,
	})
	must(err)
	view.SetAddr(h.peer.Addr().String())
	must(vfs.MkdirAllSync(h.fs, h.dir, 0o750))
	var node atomic.Pointer[quorum.Node]
	h.log, _, err = wal.Open(wal.Config{FS: h.fs, Dir: filepath.Join(h.dir, "wal"), Log: log, Pressure: func(keys []string) {
		if n := node.Load(); n != nil {
			n.Pressure(keys)
		}
	}})
	must(err)
	ncfg := quorum.NodeConfig{Self: h.self(), Dir: filepath.Join(h.dir, "quorum"), FS: h.fs, WAL: h.log, Peer: h.peer, Timings: fast, Log: log}
	if h.fault != nil {
		ncfg.State = quorum.FileState(h.fs)
	}
	cfg := h.config(log)
	if h.r.tune != nil {
		h.r.tune(&ncfg, &cfg)
	}
	h.node, err = quorum.NewNode(ncfg)
	must(err)
	node.Store(h.node)
	h.fetches = NewFetches()
	h.peer.Handle(peer.KindFetch, func(ctx context.Context, c *peer.Conn) { h.fetches.Serve(ctx, c) })
	h.peer.Serve()
	g, err := New(cfg)
	must(err)
	h.q, err = h.node.Open(t.Context(), cfg.Group, quorum.GroupConfig{Machine: g, Bootstrap: h.r.first, OnLeader: g.OnLeader})
	must(err)
	h.fetches.Add(g)
	g.Start(h.q)
	h.g.Store(g)
}

func (h *host) config(log *slog.Logger) Config {
	path := func(k ShardKey) string { return filepath.Join(h.dir, "streams", k.Incarnation, fmt.Sprint(k.Shard)) }
	b := new(bed)
	return Config{
		Group: 1, Log: log, Settings: b.settings,
		OpenLog: func(o Opening) (Log, error) {
			inc, err := o.Key.incarnation()
			if err != nil {
				return nil, err
			}
			l, _, err := seglog.Open(seglog.Config{
				FS: h.fs, Dir: path(o.Key), SegmentBytes: 4 << 20, First: o.First, Incarnation: inc, Fsync: seglog.FsyncManual,
			})
			if err != nil {
				return nil, err
			}
			return Segments(l), nil
		},
		RemoveLog: func(k ShardKey) error { return seglog.Remove(h.fs, path(k)) },
		Shard: func(o Opening) (stream.Config, error) {
			q, err := queueOf(o.Spec)
			return stream.Config{Shard: o.Key.Shard, Queue: q}, err
		},
		Peers: func() (out []string) {
			for _, other := range h.r.hosts {
				if other != h {
					out = append(out, other.name)
				}
			}
			return out
		},
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			return h.peer.Dial(ctx, node, peer.KindFetch, "")
		},
		Moved: func(node string, term uint64) *stream.Moved {
			return &stream.Moved{NodeID: node, Addr: node, Generation: term}
		},
	}
}

func (h *host) stop() {
	g := h.g.Swap(nil)
	if g == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.node.Close(ctx); err != nil {
		h.r.t.Errorf("%s: close node: %v", h.name, err)
	}
	h.fetches.Remove(g)
	if err := g.Close(ctx); err != nil {
		h.r.t.Logf("%s: close group: %v", h.name, err)
	}
	if err := errors.Join(h.peer.Close(), h.log.Close()); err != nil {
		h.r.t.Logf("%s: close: %v", h.name, err)
	}
}

// kill ends it as far as others see.
func (h *host) kill() {
	h.r.nw.Isolate(h.name)
	for _, o := range h.r.hosts {
		if o != h {
			h.r.nw.Reset(h.name, o.name)
		}
	}
	h.stop()
	h.r.nw.Rejoin(h.name)
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			for _, h := range r.hosts {
				if g := h.g.Load(); g != nil {
					r.t.Logf("%s: %+v %+v", h.name, h.q.State(), g.Status())
				}
			}
			r.t.Fatalf("waited for %s in vain", what)
		}
	}
}

// leader waits until a broker serves.
func (r *rig) leader() (found *host) {
	r.t.Helper()
	r.until("a leader that serves", func() bool {
		i := slices.IndexFunc(r.hosts, func(h *host) bool { g := h.g.Load(); return g != nil && g.Serving() })
		if i >= 0 {
			found = r.hosts[i]
		}
		return i >= 0
	})
	return found
}

// open makes a shard at whoever leads.
func (r *rig) open(n int, o Opening) ShardKey {
	r.t.Helper()
	o.Key = testKey(n)
	r.until("a shard", func() bool {
		g := r.leader().g.Load()
		return g != nil && g.OpenShard(r.t.Context(), o) == nil
	})
	return o.Key
}

// send publishes at whoever serves, again and again until it is answered: with a
// producer, so that it is there once.
func (r *rig) send(key ShardKey, producer, sequence uint64, payload string) (uint64, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, h := range r.hosts {
			g := h.g.Load()
			if g == nil || !g.Serving() {
				continue
			}
			s, ok := g.Shard(key)
			if !ok {
				continue
			}
			c := make(chan stream.Result, 1)
			s.Publish(&stream.Publish{
				Records: region(payload), HasProducer: true, Producer: producer, Sequence: sequence, Done: func(r stream.Result) { c <- r },
			})
			select {
			case res := <-c:
				var refused *stream.RefusedError
				if res.Err == nil || errors.As(res.Err, &refused) {
					return res.Offset, res.Err
				}
			case <-time.After(patience):
				return 0, errors.New("a publish was not answered")
			}
		}
	}
	return 0, errors.New("nobody took it")
}

// same waits until all brokers have the same, and compares.
func (r *rig) same(keys ...ShardKey) {
	r.t.Helper()
	r.until("all to have applied everything", func() bool {
		var first []ShardInfo
		for _, h := range r.hosts {
			g := h.g.Load()
			if g == nil {
				return false
			}
			infos := g.Shards()
			for i := range infos {
				infos[i].Oldest = 0
			}
			if first == nil {
				first = infos
			}
			if fmt.Sprint(first) != fmt.Sprint(infos) || h.q.State().Commit != r.hosts[0].q.State().Commit {
				return false
			}
		}
		return true
	})
	for _, key := range keys {
		want := r.records(r.hosts[0], key)
		for _, h := range r.hosts[1:] {
			if got := r.records(h, key); !slices.Equal(want, got) {
				r.t.Fatalf("shard %s: %s has %d records, %s has %d others", key, r.hosts[0].name, len(want), h.name, len(got))
			}
		}
	}
}

func (r *rig) records(h *host, key ShardKey) []string {
	r.t.Helper()
	k := node{b: &bed{}, name: h.name, g: h.g.Load()}
	t, ok := r.t.(*testing.T)
	if !ok {
		return nil
	}
	k.b.t = t
	return k.events(key, k.shard(key).Oldest())
}

// follow reads from whoever serves, resuming where it was ended.
func (r *rig) follow(key ShardKey, n int) (out []string) {
	next := uint64(0)
	for end := time.Now().Add(3 * patience); len(out) < n && time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, h := range r.hosts {
			g := h.g.Load()
			if g == nil {
				continue
			}
			s, ok := g.Shard(key)
			if !ok {
				continue
			}
			sub, err := s.Subscribe(stream.SubscribeOptions{
				ID: next<<8 | uint64(len(out)&0xff), Start: wire.Start{Kind: wire.StartOffset, Offset: next}, Offsets: true, Skips: true,
			})
			if err != nil {
				continue
			}
			for len(out) < n && time.Now().Before(end) {
				p, st := sub.Next(32<<10, 64<<10)
				if st == stream.Ended {
					break
				}
				if st != stream.Ready {
					time.Sleep(time.Millisecond)
					continue
				}
				out = append(out, eventsIn(r.t, p.Bytes)...)
				sub.Advance(p)
			}
			next = sub.Info().Next
			sub.Close()
		}
	}
	return out
}

func eventsIn(t testing.TB, b []byte) (out []string) {
	t.Helper()
	for len(b) > 0 {
		h, err := wire.ParseHeader(b)
		if err != nil {
			t.Error(err)
			return out
		}
		n := wire.HeaderLen + int(h.Length)
		e, err := wire.DecodeEvents(h.Flags, b[wire.HeaderLen:n])
		if err != nil {
			t.Error(err)
			return out
		}
		for i, p := range e.Records.All() {
			out = append(out, fmt.Sprint(e.Base+uint64(i), " ", string(p)))
		}
		b = b[n:]
	}
	return out
}
