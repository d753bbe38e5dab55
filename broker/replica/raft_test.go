package replica

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// While leaders are killed one after another, idempotent publishers lose nothing and
// repeat nothing, a reader that follows sees every record once, and all replicas end
// the same (B24, B30, B33).
func TestFailoversUnderLoad(t *testing.T) {
	r := newRig(t, 3, "", func(n *quorum.NodeConfig, _ *Config) { n.SnapshotEntries = 200 })
	key := r.open(0, Opening{})
	const publishers, each = 4, 120
	var all sync.WaitGroup
	for p := range uint64(publishers) {
		all.Go(func() {
			for i := range uint64(each) {
				if _, err := r.send(key, p+1, i, fmt.Sprint(p, ".", i)); err != nil {
					t.Errorf("publisher %d, sequence %d: %v", p, i, err)
					return
				}
			}
		})
	}
	seen := make(chan []string, 1)
	all.Go(func() { seen <- r.follow(key, publishers*each) })
	for range 3 {
		h := r.leader()
		time.Sleep(100 * time.Millisecond) // some load on each
		h.kill()
		r.leader()
		h.start()
	}
	all.Wait()
	r.same(key)
	want := map[string]bool{}
	for _, e := range r.records(r.hosts[0], key) {
		var offset uint64
		var text string
		if _, err := fmt.Sscan(e, &offset, &text); err != nil {
			t.Fatal(err)
		}
		if text == "hidden" {
			continue
		}
		if want[text] {
			t.Errorf("%s is there twice", text)
		}
		want[text] = true
	}
	if got := <-seen; len(want) != publishers*each || len(got) != len(want) {
		t.Errorf("%d records are there and a reader saw %d, want %d", len(want), len(got), publishers*each)
	}
}

// A follower that was away for longer than the leader keeps entries catches up through a
// manifest and fetched records, once (B50, B75).
func TestFollowerFarBehind(t *testing.T) {
	var fetched, installed atomic.Int64
	r := newRig(t, 3, "", func(n *quorum.NodeConfig, c *Config) {
		n.SnapshotBytes, n.TrailingBytes = 1<<20, 256<<10
		n.Metrics.Installed = func(uint32, time.Duration, error) { installed.Add(1) }
		c.Metrics.Fetched = func(n int) { fetched.Add(int64(n)) }
		c.FetchBytes = 64 << 10
	})
	key := r.open(0, Opening{First: 7})
	for i := range uint64(10) {
		if _, err := r.send(key, 1, i, "early"); err != nil {
			t.Fatal(err)
		}
	}
	leader := r.leader()
	away := r.hosts[0]
	if away == leader {
		away = r.hosts[1]
	}
	away.stop()
	const records, size = 60, 100 << 10
	for i := range uint64(records) {
		if _, err := r.send(key, 2, i, strings.Repeat("x", size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := leader.q.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	away.start()
	r.same(key)
	if n := fetched.Load(); n < size || n > (records+5)*size {
		t.Errorf("%d bytes were fetched of %d", n, records*size)
	}
	t.Logf("%d bytes fetched, %d installs", fetched.Load(), installed.Load())
	if n := installed.Load(); n > 2 {
		t.Errorf("%d installs", n)
	}
	if _, err := r.send(key, 1, 9, "early"); err != nil {
		t.Errorf("an old batch sent again: %v", err)
	}
}

// A leader whose disk is full lets another lead; when there is room it goes on (B82).
func TestLeaderWithAFullDisk(t *testing.T) {
	r := newRig(t, 3, "", func(n *quorum.NodeConfig, _ *Config) { n.AppendTimeout = 300 * time.Millisecond })
	key := r.open(0, Opening{})
	if _, err := r.send(key, 1, 0, "before"); err != nil {
		t.Fatal(err)
	}
	old := r.leader()
	old.fault.SetSpace(1)
	for i := range uint64(20) {
		if _, err := r.send(key, 1, i+1, strings.Repeat("x", 10<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if now := r.leader(); now == old {
		t.Error("it leads still")
	}
	old.fault.SetSpace(-1)
	r.same(key)
}

// A hand-over in order sends readers to the next leader, behind all that was committed.
func TestTransferSendsReadersOn(t *testing.T) {
	r := newRig(t, 3, "", func(n *quorum.NodeConfig, c *Config) {
		calm(n, c)
		c.HandOver = patience // the next leader may be slow to say so
	})
	key := r.open(0, Opening{})
	if _, err := r.send(key, 1, 0, "one"); err != nil {
		t.Fatal(err)
	}
	old := r.leader()
	s, _ := old.g.Load().Shard(key)
	sub, err := s.Subscribe(stream.SubscribeOptions{ID: 1, Start: wire.Start{Kind: wire.StartEarliest}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if got := readAll(t, sub); len(got) != 1 {
		t.Fatalf("read %v", got)
	}
	if err := old.q.Transfer(t.Context(), quorum.Server{}); err != nil {
		t.Fatal(err)
	}
	r.until("the reader is sent away", func() bool { _, st := sub.Next(1<<10, 1<<10); return st == stream.Ended })
	next := r.leader()
	if e := sub.End(); e.Reason != stream.EndMoved || e.Moved.NodeID != next.name || e.Next != 1 || next == old {
		t.Errorf("it ended with %+v %+v, %s leads", e, e.Moved, next.name)
	}
	if _, err := old.g.Load().Seal(t.Context(), key); !errors.Is(err, stream.ErrNotLeader) {
		t.Errorf("the old leader seals: %v", err)
	}
}

// The largest publish that a client can send is one entry, and one page of a fetch.
func TestLargestPublish(t *testing.T) {
	r := newRig(t, 3, "", func(n *quorum.NodeConfig, c *Config) { // it takes a busy machine long to copy them
		calm(n, c)
		n.AppendTimeout, n.ProposeTimeout = patience, patience
	})
	key := r.open(0, Opening{})
	away := r.hosts[0]
	if away == r.leader() {
		away = r.hosts[1]
	}
	away.stop()
	payload := strings.Repeat("x", wire.MaxRecord)
	for i := range uint64(2) {
		if at, err := r.send(key, 1, i, payload); err != nil || at != i {
			t.Fatalf("publish %d: %d, %v", i, at, err)
		}
	}
	if err := r.leader().q.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	away.start()
	r.same(key)
}
