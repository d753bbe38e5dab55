package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// same holds all running nodes' shards against the first's, byte for byte of what they
// say in a manifest, and record for record.
func (b *bed) same(keys ...ShardKey) {
	b.t.Helper()
	b.settle()
	var first *node
	var want []byte
	for _, k := range b.nodes {
		if k.stopped {
			continue
		}
		s, err := k.g.Snapshot()
		if err != nil {
			b.t.Fatal(err)
		}
		m, err := s.Persist()
		if err != nil {
			b.t.Fatalf("%s: %v", k.name, err)
		}
		if first == nil {
			first, want = k, m
			continue
		}
		if d := cmp.Diff(want, m); d != "" {
			a, _ := parseManifest(3, want)
			c, _ := parseManifest(3, m)
			b.t.Fatalf("%s and %s differ:\n%+v\n%+v", first.name, k.name, a.shards, c.shards)
		}
		for _, key := range keys {
			from := max(first.shard(key).Oldest(), k.shard(key).Oldest())
			if d := cmp.Diff(first.events(key, from), k.events(key, from)); d != "" {
				b.t.Fatalf("shard %s on %s and %s (-%s +%s):\n%s", key, first.name, k.name, first.name, k.name, d)
			}
		}
	}
}

// Publishes to many shards are answered with their offsets, in order, and all replicas
// hold the same.
func TestPublishesOfManyShards(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	var keys []ShardKey
	for i := range 5 {
		keys = append(keys, b.openShard(a, i, Opening{First: uint64(10 * i)}))
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			next := make(map[ShardKey]uint64)
			for i := range 100 {
				key := keys[rng.IntN(len(keys))]
				r := a.publish(key, fmt.Sprint(w, ".", i), "more")
				if r.Err != nil || r.Offset < next[key] {
					t.Errorf("publish: %v after offset %d", r, next[key])
					return
				}
				next[key] = r.Offset + 2
			}
		})
	}
	all.Wait()
	b.same(keys...)
	total := uint64(0)
	for i, key := range keys {
		total += a.shard(key).Mark() - uint64(10*i)
	}
	if total != 8*100*2 {
		t.Errorf("%d records are there, want %d", total, 8*100*2)
	}
	b.mu.Lock()
	n := len(b.entries)
	b.mu.Unlock()
	t.Logf("%d entries for %d publishes", n, 8*100)
}

// Whoever does not lead refuses in a way that says: nothing was written, ask another.
func TestFollowersRefuse(t *testing.T) {
	b := newBed(t, 2, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	a.must(key, "x")
	b.settle()
	f := b.nodes[1]
	if r := f.publish(key, "no"); !errors.Is(r.Err, stream.ErrNotLeader) {
		t.Errorf("a follower answers %v", r)
	}
	if _, err := f.shard(key).Subscribe(stream.SubscribeOptions{ID: 1, Start: wire.Start{Kind: wire.StartLatest}}); !errors.Is(err, stream.ErrNotLeader) {
		t.Errorf("a follower's subscribe: %v", err)
	}
	if _, err := f.g.Seal(t.Context(), key); !errors.Is(err, stream.ErrNotLeader) {
		t.Errorf("a follower seals: %v", err)
	}
}

// Who is elected before it has applied everything serves nobody until it has. // B85
func TestNobodyIsServedBeforeReplayIsOver(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	b.settle()
	behind := b.nodes[1]
	behind.pause(true)
	for i := range 50 {
		a.must(key, fmt.Sprint(i))
	}
	b.mu.Lock()
	b.term++
	b.leader = 1
	term := b.term
	b.mu.Unlock()
	a.g.OnLeader(quorum.Leadership{Term: term - 1})
	behind.g.OnLeader(quorum.Leadership{Leading: true, Term: term})
	if r := behind.publish(key, "early"); !errors.Is(r.Err, stream.ErrNotLeader) {
		t.Errorf("published before its replay was over: %+v", r)
	}
	if _, err := behind.shard(key).Subscribe(stream.SubscribeOptions{ID: 1}); !errors.Is(err, stream.ErrNotLeader) {
		t.Errorf("subscribed before its replay was over: %v", err)
	}
	if behind.g.Serving() {
		t.Error("it serves before its replay is over")
	}
	behind.pause(false)
	b.until("the leader serves", behind.g.Serving)
	sub, err := behind.shard(key).Subscribe(stream.SubscribeOptions{ID: 2, Start: wire.Start{Kind: wire.StartEarliest}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if sub.LiveOffset() != 50 {
		t.Errorf("live at %d when it began to serve, want 50", sub.LiveOffset())
	}
}

// A new leader replays everything, not only what it has seen live; offsets go on behind
// the hidden record of its term (B24, B27, B37).
func TestNewLeaderReplaysEverything(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	for i := range 10 {
		var batch []string
		for j := range 10 {
			batch = append(batch, fmt.Sprint(10*i+j))
		}
		a.must(key, batch...)
	}
	a.stop()
	c := b.lead(2)
	sub, err := c.shard(key).Subscribe(stream.SubscribeOptions{ID: 1, Start: wire.Start{Kind: wire.StartEarliest}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if sub.StartOffset() != 0 || sub.LiveOffset() != 100 {
		t.Errorf("from %d, live %d; want 0 and 100", sub.StartOffset(), sub.LiveOffset())
	}
	if got := readAll(t, sub); len(got) != 100 || got[99] != "99 99" {
		t.Errorf("%d records from the new leader, want 100: %v", len(got), got)
	}
	if at := c.must(key, "new"); at != 101 {
		t.Errorf("the first record of the term is at %d, want 101", at)
	}
	if got := readAll(t, sub); len(got) != 1 || got[0] != "101 new" {
		t.Errorf("then %v", got)
	}
}

// Who asks for new records only gets none of those that are there, while others flow (B37).
func TestLatestWhileRecordsFlow(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	for i := range 15 {
		a.must(key, fmt.Sprint(i))
	}
	a = b.lead(1)
	stop, flowing := make(chan struct{}), sync.WaitGroup{}
	flowing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				a.must(key, "flow")
			}
		}
	})
	for id := range uint64(20) {
		before := a.shard(key).Mark()
		sub, err := a.shard(key).Subscribe(stream.SubscribeOptions{ID: id, Start: wire.Start{Kind: wire.StartLatest}, Offsets: true})
		if err != nil {
			t.Fatal(err)
		}
		if sub.StartOffset() < before || sub.StartOffset() < 15 {
			t.Errorf("latest begins at %d, the mark was %d", sub.StartOffset(), before)
		}
		first := sub.StartOffset()
		b.until("something new", func() bool {
			got := readAll(t, sub)
			if len(got) == 0 {
				return false
			}
			var offset uint64
			if _, err := fmt.Sscan(got[0], &offset); err != nil || offset < first {
				t.Errorf("the first is %q, registered at %d", got[0], first)
			}
			return true
		})
		sub.Close()
	}
	close(stop)
	flowing.Wait()
}

// readAll reads what there is, as "offset payload".
func readAll(t *testing.T, sub *stream.Subscription) (out []string) {
	t.Helper()
	for {
		p, st := sub.Next(32<<10, 128<<10)
		if st != stream.Ready {
			return out
		}
		out = append(out, eventsIn(t, p.Bytes)...)
		sub.Advance(p)
	}
}

// A reader that asked for new records only gets all of those that come after a change
// of leader, from where it stood (B30).
func TestNewOnlyAcrossFailover(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	a.must(key, "old")
	sub, err := a.shard(key).Subscribe(stream.SubscribeOptions{ID: 1, Start: wire.Start{Kind: wire.StartLatest}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	c := b.lead(1)
	b.until("the reader is sent away", func() bool { _, st := sub.Next(1<<10, 1<<10); return st == stream.Ended })
	e := sub.End()
	if e.Reason != stream.EndMoved || e.Next != 1 || e.Moved == nil || e.Moved.NodeID != "b" || e.Moved.Generation != 2 {
		t.Fatalf("it ended with %+v %+v", e, e.Moved)
	}
	again, err := c.shard(key).Subscribe(stream.SubscribeOptions{ID: 2, Start: wire.Start{Kind: wire.StartOffset, Offset: e.Next}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for i := range 3 {
		c.must(key, fmt.Sprint("new", i))
	}
	if d := cmp.Diff([]string{"2 new0", "3 new1", "4 new2"}, readAll(t, again)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// An idempotent batch that is sent again after a change of leader is answered with its
// offset; other bytes under its sequence are refused (B33).
func TestIdempotenceAcrossFailover(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	send := func(k *node, sequence uint64, payload string) stream.Result {
		return k.wait(k.begin(key, &stream.Publish{Records: region(payload), HasProducer: true, Producer: 7, Sequence: sequence}))
	}
	for i := range uint64(8) {
		if r := send(a, i, fmt.Sprint(i)); r.Err != nil || r.Offset != i {
			t.Fatalf("sequence %d: %v", i, r)
		}
	}
	b.settle()
	a.snapshot()
	a.stop()
	c := b.lead(1)
	if r := send(c, 7, "7"); r.Err != nil || r.Offset != 7 {
		t.Errorf("the same batch again: %v, want offset 7", r)
	}
	var refused *stream.RefusedError
	if r := send(c, 7, "other"); !errors.As(r.Err, &refused) || refused.Reason != stream.SequenceReused || refused.Offset != 7 {
		t.Errorf("other bytes under it: %v", r)
	}
	if r := send(c, 9, "9"); !errors.As(r.Err, &refused) || refused.Reason != stream.SequenceGap || refused.Expected != 8 {
		t.Errorf("a gap: %v", r)
	}
	if r := send(c, 8, "8"); r.Err != nil || r.Offset != 9 {
		t.Errorf("the next: %v, want 9, behind the hidden record", r)
	}
	a.open()
	b.same(key)
	d := b.lead(0)
	if r := send(d, 8, "8"); r.Err != nil || r.Offset != 9 {
		t.Errorf("again at the one that came back: %v", r)
	}
}

// A shard is sealed, which gives its exact end, then dropped with its data on all.
func TestSealAndDrop(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key, other := b.openShard(a, 0, Opening{First: 5}), b.openShard(a, 1, Opening{})
	a.must(key, "x", "y")
	for range 2 { // it may be repeated
		if end, err := a.g.Seal(t.Context(), key); err != nil || end != 7 {
			t.Fatalf("sealed at %d: %v; want 7", end, err)
		}
	}
	if r := a.publish(key, "late"); r.Err == nil {
		t.Errorf("a sealed shard took %v", r)
	}
	for range 2 {
		if err := a.g.Drop(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.g.Seal(t.Context(), key); !errors.Is(err, ErrNoShard) {
		t.Errorf("seal what is dropped: %v", err)
	}
	b.settle()
	for _, k := range b.nodes {
		if _, ok := k.g.Shard(key); ok {
			t.Errorf("%s still has it", k.name)
		}
		b.until("its data is gone", func() bool { _, err := k.fs.Stat(shardPath(key)); return err != nil })
	}
	a.must(other, "z")
	b.same(other)
}

// Settings change on all replicas.
func TestConfigureOnAll(t *testing.T) {
	b := newBed(t, 2, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{Spec: spec(testSpec{Entries: 5})})
	if err := a.g.Configure(t.Context(), key, []byte("{")); err == nil {
		t.Error("settings that cannot be read were taken")
	}
	want := spec(testSpec{Entries: 6, OnFull: stream.CatchUp})
	if err := a.g.Configure(t.Context(), key, want); err != nil {
		t.Fatal(err)
	}
	b.same(key)
	for _, k := range b.nodes {
		if got := k.g.Shards(); len(got) != 1 || string(got[0].Spec) != string(want) {
			t.Errorf("%s: %+v", k.name, got)
		}
	}
}
