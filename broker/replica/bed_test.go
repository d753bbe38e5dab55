package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

const patience = 60 * time.Second

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
			q, err := queueOf(o.Spec)
			return stream.Config{Name: stream.Name{Tenant: "t", Namespace: "n", Stream: "s"}, Shard: o.Key.Shard, Queue: q}, err
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
		Dial: b.dial,
		Moved: func(node string, term uint64) *stream.Moved {
			return &stream.Moved{NodeID: node, Addr: node + ":1", Generation: term}
		},
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
	return Settings{MaxBytes: s.MaxBytes}, nil
}

func queueOf(raw []byte) (stream.Queue, error) {
	var s testSpec
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return stream.Queue{}, err
		}
	}
	return stream.Queue{Entries: s.Entries, OnFull: s.OnFull}, nil
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
