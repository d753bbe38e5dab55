//go:build chaos

package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if path, err := felixBinary(); err == nil && os.Getenv(binaryVariable) == "" {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		os.Exit(code)
	}))
}

// seeded is the randomness of a test.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FELIX_CHAOS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("FELIX_CHAOS_SEED: %v", err)
		}
	}
	t.Logf("FELIX_CHAOS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// rounds is how often the broker is killed.
func rounds(t *testing.T) int {
	t.Helper()
	s := os.Getenv("FELIX_CHAOS_ROUNDS")
	if s == "" {
		return 50
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("FELIX_CHAOS_ROUNDS=%q is no number of rounds", s)
	}
	return n
}

// letRun lets the load go on for a random time.
func (l *load) letRun(rng *rand.Rand, least, most time.Duration) {
	l.t.Helper()
	timer := time.NewTimer(least + time.Duration(rng.Int64N(int64(most-least))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
	l.check()
}

// underWay waits until publishers of every shard, and readers, have found the broker.
func (l *load) underWay() {
	l.t.Helper()
	acks, seen := map[place]int{}, map[*follower]uint64{}
	for at, k := range l.ledgers {
		acks[at] = k.acknowledged()
	}
	for _, f := range l.followers {
		seen[f] = f.next.Load()
	}
	l.p.until("publishers and readers have found the broker", func() bool {
		for at, k := range l.ledgers {
			if k.acknowledged() == acks[at] {
				return l.ctx.Err() != nil
			}
		}
		for _, f := range l.followers {
			if f.next.Load() == seen[f] {
				return l.ctx.Err() != nil
			}
		}
		return true
	})
	l.check()
}

// overlap is how much before the last verified offset a round reads again.
const overlap = 1_000

// TestKillUnderLoad kills the broker again and again while it is published to and read
// from, and verifies after each restart (B35, B48).
func TestKillUnderLoad(t *testing.T) {
	rng := seeded(t)
	p := newProcess(t)
	p.start()
	l := startLoad(p, rng)
	verified := map[place]uint64{}
	n := rounds(t)
	for round := range n {
		if rng.IntN(5) > 0 { // else it is killed while everybody is still coming back
			l.underWay()
		}
		l.letRun(rng, 0, 400*time.Millisecond)
		p.kill()
		acked := map[place]uint64{}
		for at, k := range l.ledgers {
			acked[at] = k.ackedEnd()
		}
		p.inspect(false)
		for rng.IntN(3) == 0 { // nor does a kill in the middle of the repair do harm
			p.startInVain(time.Duration(rng.Int64N(int64(40 * time.Millisecond))))
			p.inspect(false)
		}
		p.start()
		for _, s := range streams {
			for i, shard := range p.shards(s.name) {
				at := place{s.name, uint32(i)}
				if shard.NextOffset < acked[at] || shard.Error != "" {
					t.Fatalf("round %d: %s goes to %d after the restart, %d was acknowledged before it (%s)",
						round, at, shard.NextOffset, acked[at]-1, shard.Error)
				}
				from := max(shard.OldestOffset, verified[at]-min(verified[at], overlap))
				if round%10 == 9 {
					from = shard.OldestOffset
				}
				l.readBack(at, from, shard.NextOffset)
				verified[at] = shard.NextOffset
			}
		}
		l.check()
	}
	l.quiesce()
	p.terminate()
	p.inspect(true)
	for _, f := range l.followers {
		t.Logf("reader of %-8s slow %-5v lost %d times, lagged %d times, %d gaps", f.at, f.slow, f.lost.Load(), f.lagged.Load(), f.gaps.Load())
		if f.lost.Load() == 0 {
			t.Errorf("a reader of %s has not noticed %d kills", f.at, n)
		}
	}
}

// TestTerminateUnderLoad asks the broker to end under load: everything it has taken is
// answered, its logs are clean, and readers and publishers go on with the next one.
func TestTerminateUnderLoad(t *testing.T) {
	rng := seeded(t)
	p := newProcess(t)
	p.start()
	l := startLoad(p, rng)
	for range max(3, rounds(t)/10) {
		l.underWay()
		l.letRun(rng, 0, 400*time.Millisecond)
		p.terminate()
		p.inspect(true)
		p.start()
		l.draining.Store(false)
	}
	l.underWay()
	l.quiesce()
	for at, k := range l.ledgers {
		if _, _, unknowns, _ := k.tally(); unknowns > 0 {
			t.Errorf("%s: %d records have an unknown outcome: a shutdown acknowledges or refuses what it was given", at, unknowns)
		}
	}
	p.terminate()
	p.inspect(true)
}

// TestPauseUnderLoad stops the broker's process for a while, for less and for longer
// than a connection lives without a sign of it, and kills it while it is stopped.
func TestPauseUnderLoad(t *testing.T) {
	rng := seeded(t)
	p := newProcess(t)
	p.start()
	l := startLoad(p, rng)
	for _, pause := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 2500 * time.Millisecond} {
		l.underWay()
		p.signal(syscall.SIGSTOP)
		l.letRun(rng, pause, pause+time.Millisecond)
		p.signal(syscall.SIGCONT)
	}
	l.underWay()
	p.signal(syscall.SIGSTOP)
	l.letRun(rng, 50*time.Millisecond, 60*time.Millisecond)
	p.kill()
	p.inspect(false)
	p.start()
	l.underWay()
	l.quiesce()
	p.terminate()
	p.inspect(true)
}
