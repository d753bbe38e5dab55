package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// openSegments opens a durable shard over a real log in dir; close ends both.
func openSegments(t *testing.T, dir string, cfg Config) (s *Shard, closeAll func()) {
	t.Helper()
	cfg.Name = Name{"t1", "default", "s"}
	var log *seglog.Log
	s, err := Open(cfg, func(h Hooks) (Log, error) {
		l, _, err := seglog.Open(seglog.Config{
			Dir: dir, SegmentBytes: 64 << 10, Committed: h.Committed, OnRecover: h.OnRecover,
			RestoreState: h.RestoreState, SnapshotState: h.SnapshotState,
		})
		if err != nil {
			return nil, err
		}
		log = l
		return Segments(l), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		closeShard(t, s, EndShutdown)
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Over a real log with small segments and a small ring: publishers at full speed,
// readers that start anywhere, and everything again after reopening (B16, B25, B46).
func TestDurableShardOverSegments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	dir := t.TempDir()
	const publishers, each = 8, 200
	total := uint64(0)
	for round := range 3 {
		s, closeAll := openSegments(t, dir, Config{TailBytes: 32 << 10, Queue: Queue{Entries: 8}})
		if s.Mark() != total {
			t.Fatalf("round %d opens at %d, want %d: every acknowledged record is there", round, s.Mark(), total)
		}
		end := total + publishers*each
		var all sync.WaitGroup
		for p := range publishers {
			all.Go(func() {
				for i := range each {
					if r := <-publish(s, fmt.Sprintf("%d/%d %0200d", p, i, i)); r.Err != nil {
						t.Errorf("publish: %v", r.Err)
					}
				}
			})
		}
		for r := range 10 {
			start := rng.Uint64N(end)
			all.Go(func() { readTo(t, s, uint64(r), start, end) })
		}
		all.Wait()
		total = end
		closeAll()
	}
}

// Idempotent producers survive a restart, across segments (B33, B31).
func TestProducersSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	big := string(make([]byte, 4<<10))
	s, closeAll := openSegments(t, dir, Config{})
	for i := range uint64(40) {
		if r := <-idempotent(s, 9, i, fmt.Sprint(i), big); r.Err != nil || r.Offset != 2*i {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	closeAll()
	s, closeAll = openSegments(t, dir, Config{})
	defer closeAll()
	for i := range uint64(40) {
		if r := <-idempotent(s, 9, i, fmt.Sprint(i), big); r.Err != nil || r.Offset != 2*i {
			t.Errorf("re-sent %d: %+v, want the first answer", i, r)
		}
	}
	if r := <-idempotent(s, 9, 40, "next"); r.Err != nil || r.Offset != 80 {
		t.Errorf("the next one: %+v", r)
	}
}

// A reader that comes to damage gets everything before it and an end; who comes back
// to that offset is refused for good, and does not come back for ever.
func TestDamageIsMetOnce(t *testing.T) {
	dir := t.TempDir()
	s, closeAll := openSegments(t, dir, Config{})
	for range 40 {
		mustPublish(t, s, string(make([]byte, 4<<10)))
	}
	closeAll()
	name := filepath.Join(dir, fmt.Sprintf("%020d.log", 0))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[30<<10] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, closeAll = openSegments(t, dir, Config{})
	defer closeAll()
	o := offered(1)
	o.Start = earliest
	sub := subscribe(t, s, o)
	got, st := drain(t, sub)
	end := sub.End()
	if st != Ended || end.Reason != EndCorrupt || len(got) == 0 || end.Next != uint64(len(got)) {
		t.Fatalf("status %v after %d records, end %+v", st, len(got), end)
	}
	var refused *Error
	var damage *seglog.CorruptionError
	if _, err := s.Subscribe(from(2, offered(0), end.Next)); !errors.As(err, &refused) || refused.Retry != wire.RetryFatal || !errors.As(err, &damage) {
		t.Errorf("back at the damage: %v, want a refusal that says so", err)
	}
	if got, st := drain(t, subscribe(t, s, from(3, offered(0), 39))); len(got) != 1 || st != Idle {
		t.Errorf("behind the damage: %d records, status %v", len(got), st)
	}
}
