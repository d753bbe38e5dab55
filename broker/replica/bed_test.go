package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

const patience = 20 * time.Second

// bed is a few brokers with a replica each. The log that they agree on is the test's:
// what the leader proposes is an entry at once.
type bed struct {
	t     *testing.T
	nodes []*node

	mu      sync.Mutex
	cond    *sync.Cond
	entries []logged
	term    uint64
	leader  int // -1: nobody
	over    bool
	conns   sync.WaitGroup
	taken   map[string]int // fetches by node asked
}

type logged struct {
	term uint64
	data []byte
	by   *node
	done *fakeProposal
}

type fakeProposal struct {
	done   chan struct{}
	result any
	err    error
}

func (p *fakeProposal) Done() <-chan struct{} { return p.done }
func (p *fakeProposal) Result() (any, error)  { return p.result, p.err }

// node is one broker: its disk outlives its group.
type node struct {
	b       *bed
	name    string
	fs      *faultfs.FS
	fetches *Fetches
	cfg     Config

	g        *Group
	applying sync.Mutex // held for one call of the machine
	applied  int        // guarded by bed.mu, as are the next three
	paused   bool
	stopped  bool
	loop     sync.WaitGroup

	manifest   []byte // newest snapshot, and how many entries it covers
	manifestAt int
}

func newBed(t *testing.T, n int, change func(*Config)) *bed {
	t.Helper()
	b := &bed{t: t, leader: -1, taken: make(map[string]int)}
	b.cond = sync.NewCond(&b.mu)
	for i := range n {
		k := &node{b: b, name: string(rune('a' + i)), fs: faultfs.New(uint64(i))}
		b.nodes = append(b.nodes, k)
	}
	for _, k := range b.nodes {
		k.cfg = b.config(k)
		if change != nil {
			change(&k.cfg)
		}
		k.open()
	}
	t.Cleanup(b.close)
	return b
}

type testSpec struct {
	MaxBytes int64
	Entries  int
	OnFull   stream.OnFull
}

func spec(s testSpec) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

func (b *bed) config(k *node) Config {
	return Config{
		Group: 3,
		OpenLog: func(o Opening) (Log, error) {
			inc, err := o.Key.incarnation()
			if err != nil {
				return nil, err
			}
			l, _, err := seglog.Open(seglog.Config{
				FS: k.fs, Dir: shardPath(o.Key), SegmentBytes: 16 << 10, First: o.First, Incarnation: inc, Fsync: seglog.FsyncManual,
			})
			if err != nil {
				return nil, err
			}
			return Segments(l), nil
		},
		RemoveLog: func(key ShardKey) error { return seglog.Remove(k.fs, shardPath(key)) },
		Shard: func(o Opening) (stream.Config, error) {
			s, err := b.settings(o.Spec)
			return stream.Config{Name: stream.Name{Tenant: "t", Namespace: "n", Stream: "s"}, Shard: o.Key.Shard, Queue: s.Queue}, err
		},
		Settings: b.settings,
		Peers: func() (out []string) {
			for _, other := range b.nodes {
				if other != k {
					out = append(out, other.name)
				}
			}
			return out
		},
		Dial:      b.dial,
		Moved:     func(node string, term uint64) *stream.Moved { return &stream.Moved{NodeID: node, Addr: node + ":1", Generation: term} },
		TrimEvery: time.Hour, HandOver: 500 * time.Millisecond, FetchBytes: 8 << 10,
	}
}

func (b *bed) settings(raw []byte) (Settings, error) {
	var s testSpec
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return Settings{}, err
		}
	}
	return Settings{Queue: stream.Queue{Entries: s.Entries, OnFull: s.OnFull}, MaxBytes: s.MaxBytes}, nil
}

func shardPath(k ShardKey) string { return filepath.Join("/data", k.Incarnation, fmt.Sprint(k.Shard)) }

// dial connects to a node's fetches through a pipe.
func (b *bed) dial(_ context.Context, name string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.nodes, func(k *node) bool { return k.name == name })
	if i < 0 || b.nodes[i].stopped || b.over {
		return nil, errors.New("nobody is there")
	}
	b.taken[name]++
	here, there := net.Pipe()
	f := b.nodes[i].fetches
	b.conns.Go(func() { f.Serve(b.t.Context(), there) })
	return here, nil
}

// open starts a node from what its disk and its newest manifest say.
func (k *node) open() {
	k.b.t.Helper()
	g, err := New(k.cfg)
	if err != nil {
		k.b.t.Fatal(err)
	}
	if err := g.Recover(k.manifest); err != nil {
		k.b.t.Fatal(err)
	}
	k.b.mu.Lock()
	k.g, k.fetches = g, NewFetches()
	k.fetches.Add(g)
	k.applied, k.stopped = k.manifestAt, false
	k.b.mu.Unlock()
	g.start(k)
	k.loop.Go(func() { k.run(g) })
}

// run applies entries as they come.
func (k *node) run(g *Group) {
	b := k.b
	for {
		b.mu.Lock()
		for !k.stopped && (k.paused || k.applied >= len(b.entries)) {
			b.cond.Wait()
		}
		if k.stopped {
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		k.applying.Lock()
		b.mu.Lock()
		at := k.applied
		e := b.entries[at]
		b.mu.Unlock()
		got := g.Apply(uint64(at+1), e.term, e.data)
		k.applying.Unlock()
		b.mu.Lock()
		if g.ctx.Err() == nil {
			k.applied = at + 1
		}
		if done := b.entries[at].done; e.by == k && done != nil {
			b.entries[at].done = nil
			done.result = got
			close(done.done)
		}
		b.cond.Broadcast()
		b.mu.Unlock()
	}
}

// stop ends a node as a crash of its process would, but for its goroutines.
func (k *node) stop() {
	k.b.t.Helper()
	k.b.mu.Lock()
	if k.stopped {
		k.b.mu.Unlock()
		return
	}
	k.stopped = true
	if i := k.b.leader; i >= 0 && k.b.nodes[i] == k {
		k.b.leader = -1
	}
	for i := range k.b.entries { // nobody hears of them any more
		if e := &k.b.entries[i]; e.by == k && e.done != nil {
			e.done.err = quorum.ErrOutcomeUnknown
			close(e.done.done)
			e.done = nil
		}
	}
	k.b.cond.Broadcast()
	k.b.mu.Unlock()
	k.g.Interrupt()
	k.loop.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.fetches.Remove(k.g)
	if err := k.g.Close(ctx); err != nil && !errors.Is(err, seglog.ErrPoisoned) && !errors.Is(err, fs.ErrInvalid) {
		k.b.t.Logf("close %s: %v", k.name, err)
	}
}

func (b *bed) close() {
	for _, k := range b.nodes {
		k.stop()
	}
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.conns.Wait()
}

// lead makes a node the leader of a new term.
func (b *bed) lead(i int) *node {
	b.t.Helper()
	b.mu.Lock()
	old := b.leader
	b.term++
	b.leader = i
	term := b.term
	b.cond.Broadcast()
	b.mu.Unlock()
	if old >= 0 {
		b.nodes[old].g.OnLeader(quorum.Leadership{Term: term - 1})
	}
	k := b.nodes[i]
	k.g.OnLeader(quorum.Leadership{Leading: true, Term: term})
	b.until("the leader serves", k.g.Serving)
	return k
}

// Propose implements raft.
func (k *node) Propose(data []byte) proposal {
	b := k.b
	p := &fakeProposal{done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leader < 0 || b.nodes[b.leader] != k || k.stopped {
		p.err = quorum.ErrNotLeader
		close(p.done)
		return p
	}
	b.entries = append(b.entries, logged{b.term, data, k, p})
	b.cond.Broadcast()
	return p
}

// State implements raft.
func (k *node) State() quorum.State {
	b := k.b
	b.mu.Lock()
	defer b.mu.Unlock()
	st := quorum.State{Term: b.term}
	if b.leader >= 0 {
		st.LeaderKnown, st.Leader = true, quorum.Server{Node: b.nodes[b.leader].name}
		st.Leading = b.nodes[b.leader] == k
	}
	return st
}

// Ready implements raft.
func (k *node) Ready(ctx context.Context) error {
	b := k.b
	stop := context.AfterFunc(ctx, b.cond.Broadcast)
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := len(b.entries); k.applied < n; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if b.leader < 0 || b.nodes[b.leader] != k {
			return quorum.ErrNotLeader
		}
		b.cond.Wait()
	}
	return nil
}

// Transfer implements raft: the next node that runs leads.
func (k *node) Transfer(context.Context, quorum.Server) error {
	b := k.b
	b.mu.Lock()
	to := -1
	for i, other := range b.nodes {
		if other != k && !other.stopped && !other.paused {
			to = i
		}
	}
	if to < 0 || b.leader < 0 || b.nodes[b.leader] != k {
		b.mu.Unlock()
		return quorum.ErrNotVoter
	}
	b.term++
	b.leader = to
	term := b.term
	b.mu.Unlock()
	k.g.OnLeader(quorum.Leadership{Term: term - 1})
	b.nodes[to].g.OnLeader(quorum.Leadership{Leading: true, Term: term})
	return nil
}

// snapshot takes and persists one.
func (k *node) snapshot() {
	k.b.t.Helper()
	k.applying.Lock()
	k.b.mu.Lock()
	at := k.applied
	k.b.mu.Unlock()
	s, err := k.g.Snapshot()
	k.applying.Unlock()
	if err != nil {
		k.b.t.Fatal(err)
	}
	defer s.Release()
	m, err := s.Persist()
	if err != nil {
		k.b.t.Fatal(err)
	}
	k.manifest, k.manifestAt = m, at
}

// install has k catch up through the newest snapshot of another.
func (k *node) install(from *node) error {
	k.applying.Lock()
	defer k.applying.Unlock()
	err := k.g.Restore(uint64(from.manifestAt), from.manifest, quorum.Server{Node: from.name})
	if err == nil {
		k.b.mu.Lock()
		k.manifest, k.manifestAt, k.applied = from.manifest, from.manifestAt, from.manifestAt
		k.b.mu.Unlock()
	}
	return err
}

func (k *node) pause(on bool) {
	k.b.mu.Lock()
	k.paused = on
	k.b.cond.Broadcast()
	k.b.mu.Unlock()
}

// settle waits until the nodes have applied everything.
func (b *bed) settle(nodes ...*node) {
	b.t.Helper()
	if len(nodes) == 0 {
		nodes = b.nodes
	}
	b.until("all is applied", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, k := range nodes {
			if !k.stopped && k.applied < len(b.entries) {
				return false
			}
		}
		return true
	})
}

func (b *bed) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited for %s in vain", what)
		}
	}
}

func testKey(n int) ShardKey {
	return ShardKey{Incarnation: fmt.Sprintf("%032x", 0xf0+n), Shard: uint32(n)}
}

// openShard opens a shard on all and gives its key.
func (b *bed) openShard(k *node, n int, o Opening) ShardKey {
	b.t.Helper()
	o.Key = testKey(n)
	if err := k.g.OpenShard(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	return o.Key
}

func (k *node) shard(key ShardKey) *stream.Shard {
	k.b.t.Helper()
	s, ok := k.g.Shard(key)
	if !ok {
		k.b.t.Fatalf("%s has no shard %s", k.name, key)
	}
	return s
}

// publish publishes and waits for the answer.
func (k *node) publish(key ShardKey, payloads ...string) stream.Result {
	k.b.t.Helper()
	return k.wait(k.begin(key, &stream.Publish{Records: region(payloads...)}))
}

func (k *node) must(key ShardKey, payloads ...string) uint64 {
	k.b.t.Helper()
	r := k.publish(key, payloads...)
	if r.Err != nil {
		k.b.t.Fatal(r.Err)
	}
	return r.Offset
}

func (k *node) begin(key ShardKey, p *stream.Publish) <-chan stream.Result {
	k.b.t.Helper()
	c := make(chan stream.Result, 2) // a second answer would be seen
	p.Done = func(r stream.Result) { c <- r }
	k.shard(key).Publish(p)
	return c
}

func (k *node) wait(c <-chan stream.Result) stream.Result {
	k.b.t.Helper()
	select {
	case r := <-c:
		return r
	case <-time.After(patience):
		k.b.t.Fatal("a publish was not answered")
	}
	return stream.Result{}
}

func region(payloads ...string) wire.Records {
	var b []byte
	for _, p := range payloads {
		b = wire.AppendRecord(b, []byte(p))
	}
	return wire.Records{Count: uint32(len(payloads)), Bytes: b}
}

// events reads a shard's log from an offset on, as "offset payload".
func (k *node) events(key ShardKey, from uint64) (out []string) {
	k.b.t.Helper()
	s := k.g.find(key)
	if s == nil {
		k.b.t.Fatalf("%s has no shard %s", k.name, key)
	}
	for from < s.Mark() {
		records, _, err := s.log.Records(from, 1<<20, nil)
		if err != nil {
			k.b.t.Fatalf("%s: read shard %s at %d: %v", k.name, key, from, err)
		}
		for _, r := range records {
			from = r.Base + uint64(r.Count)
			if r.Kind != seglog.KindEvents {
				out = append(out, fmt.Sprint(r.Base, " hidden"))
				continue
			}
			h, err := wire.ParseHeader(r.Frame)
			if err != nil {
				k.b.t.Fatal(err)
			}
			e, err := wire.DecodeEvents(h.Flags, r.Frame[wire.HeaderLen:])
			if err != nil {
				k.b.t.Fatal(err)
			}
			for i, p := range e.Records.All() {
				out = append(out, fmt.Sprint(e.Base+uint64(i), " ", string(p)))
			}
		}
	}
	return out
}
