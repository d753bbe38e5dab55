package stream

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"felix.dev/felix/broker/seglog"
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
		if err := s.Close(t.Context(), EndShutdown); err != nil {
			t.Error(err)
		}
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
