package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

// countedConn counts what is read, and breaks after so many bytes.
type countedConn struct {
	net.Conn
	read  *atomic.Int64
	limit int64 // 0: none
}

func (c countedConn) Read(b []byte) (int, error) {
	if c.limit > 0 && c.read.Load() > c.limit {
		_ = c.Close()
		return 0, errors.New("the line is cut")
	}
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// A follower that was away catches up in pages, goes on where it was when the line was
// cut or it was ended, and is sent nothing twice (B50, B75).
func TestCatchingUpIsResumed(t *testing.T) {
	var read atomic.Int64
	var cut atomic.Bool
	b := newBed(t, 2, func(c *Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, node string) (net.Conn, error) {
			conn, err := dial(ctx, node)
			counted := countedConn{Conn: conn, read: &read}
			if cut.Load() {
				counted.limit = read.Load() + 300<<10
			}
			return counted, err
		}
	})
	a, f := b.lead(0), b.nodes[1]
	key := b.openShard(a, 0, Opening{})
	other := b.openShard(a, 1, Opening{First: 9})
	a.must(key, "early")
	b.settle()
	f.pause(true)
	const records, size = 20, 90 << 10
	for i := range records {
		a.must(key, fmt.Sprint(i)+strings.Repeat("x", size))
	}
	a.must(other, "y")
	b.lead(0)
	a.must(other, "z")
	third := b.openShard(a, 2, Opening{})
	a.must(third, "new")
	a.snapshot()
	cut.Store(true)
	tries := 0
	for err := f.install(a); err != nil; err = f.install(a) {
		if tries++; tries > 20 {
			t.Fatal(err)
		}
		if tries%2 == 1 { // it ends and begins again, with more in its logs than its manifest says
			f.stop()
			f.open()
		}
	}
	if tries == 0 {
		t.Error("the line was never cut")
	}
	if sent := read.Load(); sent > (records+int64(tries)*5)*size {
		t.Errorf("%d bytes were sent for %d, in %d attempts", sent, records*size, tries+1)
	}
	f.pause(false)
	a.must(key, "later")
	b.same(key, other, third)
}

// What retention has taken at the leader is not waited for; a follower that was away
// for longer begins with what is left (B47).
func TestCatchingUpBehindRetention(t *testing.T) {
	b := newBed(t, 3, nil)
	a, f := b.lead(0), b.nodes[2]
	key := b.openShard(a, 0, Opening{Spec: spec(testSpec{MaxBytes: 40 << 10})})
	a.must(key, "first")
	b.settle()
	f.pause(true)
	big := strings.Repeat("x", 3000)
	for range 100 {
		a.must(key, big)
	}
	a.g.proposeTrims()
	b.settle(a, b.nodes[1])
	oldest := a.shard(key).Oldest()
	if oldest == 0 || oldest != b.nodes[1].shard(key).Oldest() {
		t.Fatalf("the oldest is %d and %d", oldest, b.nodes[1].shard(key).Oldest())
	}
	if bytes := a.shard(key).Info().LogBytes; bytes > 80<<10 {
		t.Errorf("the log has %d bytes, 40 KiB are kept", bytes)
	}
	var cursor *stream.CursorError
	if _, err := a.shard(key).Subscribe(stream.SubscribeOptions{ID: 1, Start: wire.Start{Kind: wire.StartOffset}}); !errors.As(err, &cursor) || cursor.Available != oldest {
		t.Errorf("subscribe to what is gone: %v", err)
	}
	// Nothing was taken from the follower yet: it has not stored it.
	if f.shard(key).Oldest() != 0 || f.shard(key).Mark() != 1 {
		t.Errorf("the follower that is away has %d to %d", f.shard(key).Oldest(), f.shard(key).Mark())
	}
	a.snapshot()
	if err := f.install(a); err != nil {
		t.Fatal(err)
	}
	if got := f.shard(key).Oldest(); got != oldest {
		t.Errorf("the follower's oldest is %d, want %d", got, oldest)
	}
	f.pause(false)
	c := b.lead(2)
	c.must(key, "last")
	b.same(key)
}

// A replica that lost the end of its logs in a power cut applies again what is missing;
// what is there is skipped.
func TestPowerCuts(t *testing.T) {
	for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Random, faultfs.Keep} {
		b := newBed(t, 2, nil)
		a, f := b.lead(0), b.nodes[1]
		keys := []ShardKey{b.openShard(a, 0, Opening{}), b.openShard(a, 1, Opening{First: 3})}
		for round := range 4 {
			for i := range 30 {
				a.must(keys[i%2], fmt.Sprint(round, ".", i), strings.Repeat("x", i*40))
				if i == 10 && round > 0 {
					b.settle()
					f.snapshot()
				}
			}
			b.settle()
			image := f.fs.CrashImage(policy, uint64(round))
			f.stop()
			f.fs = image
			f.open()
			b.same(keys...)
			b.lead(0)
		}
	}
}

// A replica whose logs are gone fetches them from others, before it leads.
func TestLostLogsAreFetched(t *testing.T) {
	b := newBed(t, 3, nil)
	a, f := b.lead(0), b.nodes[1]
	key := b.openShard(a, 0, Opening{First: 4})
	for i := range 50 {
		a.must(key, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	b.settle()
	f.snapshot()
	f.stop()
	f.fs = faultfs.New(9)
	f.open()
	b.until("the shard is whole", func() bool { return f.g.Status().Repairing == 0 && f.g.find(key).log.Next() >= 104 })
	b.same(key)
	c := b.lead(1)
	if at := c.must(key, "new"); at != 105 {
		t.Errorf("the next record is at %d, want 105", at)
	}
	b.same(key)
}

// A reader that meets damage makes its broker give leadership away and fetch the
// shard anew, without a restart.
func TestDamageIsRepaired(t *testing.T) {
	b := newBed(t, 3, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	for i := range 60 {
		a.must(key, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	b.settle()
	damage(t, a, key, 0, 8000)
	s := a.shard(key)
	s.Unlead(stream.EndDeposed, nil) // the ring would hide it
	s.Lead()
	sub, err := s.Subscribe(stream.SubscribeOptions{ID: 1, Start: wire.Start{Kind: wire.StartEarliest}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	got := readAll(t, sub)
	if len(got) >= 120 || sub.End().Reason != stream.EndCorrupt {
		t.Fatalf("a reader got %d records and %+v", len(got), sub.End())
	}
	b.until("another leads", func() bool { return !a.g.Serving() && (b.nodes[1].g.Serving() || b.nodes[2].g.Serving()) })
	b.until("the shard is whole", func() bool { return a.g.Status().Repairing == 0 })
	b.same(key)
	if got := a.events(key, 0); len(got) != 120 {
		t.Errorf("%d records are there again, want 120", len(got))
	}
	b.lead(0)
	again, err := a.shard(key).Subscribe(stream.SubscribeOptions{ID: 2, Start: wire.Start{Kind: wire.StartOffset, Offset: sub.End().Next}, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if rest := readAll(t, again); len(got)+len(rest) != 120 {
		t.Errorf("the rest is %d records behind %d", len(rest), len(got))
	}
}

// damage spoils a segment of a shard, counted from the first or, negative, the last.
func damage(t *testing.T, k *node, key ShardKey, which int, pos int64) {
	t.Helper()
	entries, err := k.fs.ReadDir(shardPath(key))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") {
			names = append(names, e.Name())
		}
	}
	if which < 0 {
		which += len(names)
	}
	f, err := k.fs.OpenFile(filepath.Join(shardPath(key), names[which]), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("spoilt spoilt spoilt"), pos); err != nil {
		t.Fatal(err)
	}
}

// Nobody is asked for what a broker has lost while it is the only one that has the
// rest: what is there stays.
func TestDamageWithoutOthers(t *testing.T) {
	b := newBed(t, 1, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	for i := range 60 {
		a.must(key, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	damage(t, a, key, 0, 8000)
	a.g.find(key).damaged(errors.New("a reader says so"))
	b.until("it is seen", func() bool { return a.g.Status().Repairing == 1 })
	if at := a.must(key, "goes on"); at != 120 {
		t.Errorf("the next record is at %d", at)
	}
	records, _, err := a.g.find(key).log.Records(0, 100, nil)
	if err != nil || len(records) == 0 {
		t.Errorf("what was there is gone: %v", err)
	}
}

// Damage that is found as a broker starts is repaired as well, before it can lead.
func TestDamageAtStart(t *testing.T) {
	var broken atomic.Int64
	b := newBed(t, 3, func(c *Config) { c.Metrics.Broken = func() { broken.Add(1) } })
	a, f := b.lead(0), b.nodes[1]
	key := b.openShard(a, 0, Opening{})
	for i := range 17 {
		a.must(key, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	b.settle()
	f.snapshot()
	a.must(key, "what was there was on disk", "")
	b.settle()
	f.stop()
	damage(t, f, key, -1, 700)
	f.open()
	b.until("the shard is whole", func() bool { return f.g.Status().Repairing == 0 })
	b.same(key)
	if broken.Load() != 1 {
		t.Errorf("%d shards were found broken", broken.Load())
	}
	c := b.lead(1)
	c.must(key, "new")
	b.same(key)
}

// A follower whose log is damaged and that was away catches up all the same; what the
// leader cannot read itself comes from a third broker.
func TestCatchingUpOverDamage(t *testing.T) {
	b := newBed(t, 3, nil)
	a, f := b.lead(0), b.nodes[1]
	key, gone := b.openShard(a, 0, Opening{}), b.openShard(a, 1, Opening{})
	for i := range 17 {
		a.must(key, fmt.Sprint(i), strings.Repeat("x", 1000))
		a.must(gone, "x")
	}
	b.settle()
	f.snapshot()
	a.must(key, "what was there was on disk", "")
	b.settle()
	f.stop()
	damage(t, f, key, -1, 700)
	for i := range 40 {
		a.must(key, fmt.Sprint(i), strings.Repeat("y", 1000))
	}
	b.settle(a, b.nodes[2])
	a.snapshot()
	b.nodes[2].pause(true) // nobody may take over from the leader
	damage(t, a, key, 0, 8000)
	if err := a.g.Drop(t.Context(), gone); err != nil { // after the snapshot
		t.Fatal(err)
	}
	// The follower's own repair may come first; both end the same.
	f.open()
	f.pause(true)
	if err := f.install(a); err != nil {
		t.Fatal(err)
	}
	f.pause(false)
	b.settle(f)
	if got := f.events(key, 0); len(got) != 17*2+2+40*2 {
		t.Errorf("%d records are there", len(got))
	}
	if _, ok := f.g.Shard(gone); ok {
		t.Error("a dropped shard is there")
	}
	b.nodes[2].pause(false)
}

// A broker that does not have a shard yet, because it has just begun again, is not taken
// for one that has dropped it: who catches up would begin the shard anew without its
// records. One that has dropped it is.
func TestCatchingUpFromOneThatBegins(t *testing.T) {
	b := newBed(t, 3, nil)
	a, f := b.lead(0), b.nodes[2]
	f.pause(true)
	key, dropped := b.openShard(a, 0, Opening{}), b.openShard(a, 1, Opening{})
	a.must(key, "one", "two")
	a.must(dropped, "gone")
	a.snapshot()
	if err := a.g.Drop(t.Context(), dropped); err != nil {
		t.Fatal(err)
	}
	b.settle(a, b.nodes[1])

	begun, err := New(a.cfg)
	if err != nil {
		t.Fatal(err)
	}
	was := a.fetches
	b.mu.Lock()
	a.fetches = NewFetches()
	a.fetches.Add(begun)
	b.mu.Unlock()
	if err := f.install(a); err != nil {
		t.Logf("not from that one alone: %v", err)
	}
	b.mu.Lock()
	a.fetches = was
	b.mu.Unlock()
	if err := f.install(a); err != nil {
		t.Fatal(err)
	}
	f.pause(false)
	c := b.lead(2)
	c.must(key, "three")
	b.same(key)
	if got := c.events(key, 0); len(got) != 4 || got[0] != "0 one" {
		t.Errorf("the new leader has %q", got)
	}
	if _, ok := c.g.Shard(dropped); ok {
		t.Error("the dropped shard is back")
	}
}

// What a reader found damaged is fetched by catching up too, which calls the shard whole.
func TestCatchingUpRepairsWhatReadersFound(t *testing.T) {
	var alone atomic.Bool
	b := newBed(t, 2, func(c *Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, node string) (net.Conn, error) {
			if alone.Load() {
				return nil, errors.New("nobody is there yet")
			}
			return dial(ctx, node)
		}
	})
	a, f := b.lead(0), b.nodes[1]
	key := b.openShard(a, 0, Opening{})
	for i := range 40 {
		a.must(key, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	b.settle()
	alone.Store(true)
	damage(t, f, key, 0, 8000)
	s := f.g.find(key)
	_, _, err := s.log.Records(0, 1<<20, nil)
	for from := uint64(0); err == nil && from < 80; from++ {
		_, _, err = s.log.Records(from, 1, nil)
	}
	if err == nil {
		t.Fatal("the damage does not show")
	}
	s.damaged(err)
	f.pause(true)
	a.must(key, "more")
	a.snapshot()
	alone.Store(false)
	if err := f.install(a); err != nil {
		t.Fatal(err)
	}
	if got := f.events(key, 0); len(got) != 81 {
		t.Errorf("%d records are there", len(got))
	}
	f.pause(false)
	b.same(key)
}
