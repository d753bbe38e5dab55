//go:build chaos

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// chaosFor is how long seeds are tried in all, half with clusters of processes and half with clusters in this process:
// CHAOS_FOR, 20 minutes if it is not set.
func chaosFor(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("CHAOS_FOR")
	if s == "" {
		return 20 * time.Minute
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		t.Fatalf("CHAOS_FOR=%q is no time", s)
	}
	return d
}

// trySeeds runs one seed after the other until the time is up or one has failed. FELIX_CHAOS_SEED is the only one, if it is
// set.
func trySeeds(t *testing.T, run func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	only := os.Getenv("FELIX_CHAOS_SEED")
	deadline := time.Now().Add(chaosFor(t) / 2)
	seed := uint64(time.Now().UnixNano())
	if only != "" {
		var err error
		if seed, err = strconv.ParseUint(only, 10, 64); err != nil {
			t.Fatalf("FELIX_CHAOS_SEED: %v", err)
		}
	}
	for n := 0; n == 0 || only == "" && !t.Failed() && time.Now().Before(deadline); n++ {
		t.Run(fmt.Sprintf("FELIX_CHAOS_SEED=%d", seed), func(t *testing.T) {
			run(t, rand.New(rand.NewPCG(seed, 0)))
		})
		seed++
	}
}

// The streams of a seed.
const (
	streamQuorum = "quorum" // one shard
	streamParts  = "parts"  // two shards, keeps a MiB
	streamOwned  = "owned"  // durable: one broker has it
)

// gather makes the streams and starts publishers and readers of all kinds.
func gather(c *cluster, rng *rand.Rand) *crowd {
	c.t.Helper()
	c.create(streamQuorum, "Quorum")
	c.create(streamParts, "Quorum", func(s *admin.StreamSpec) { s.Shards, s.Retention.MaxBytes = 2, 1<<20 })
	c.create(streamOwned, "Durable")
	w := newCrowd(c)
	w.trims[streamParts] = true
	anybody := func() member { return c.members[rng.IntN(len(c.members))] }
	for _, s := range []struct {
		stream string
		shard  uint32
	}{{streamQuorum, 0}, {streamQuorum, 0}, {streamParts, 0}, {streamParts, 1}, {streamOwned, 0}} {
		w.follow(s.stream, s.shard, anybody())
	}
	idempotent := client.PublisherConfig{Idempotent: true, MaxBatchRecords: 4}
	for _, f := range []flow{
		{stream: streamQuorum, how: idempotent, burst: 64},
		{stream: streamQuorum, how: client.PublisherConfig{Idempotent: true}, burst: 1},
		{stream: streamQuorum, how: client.PublisherConfig{MaxBatchRecords: 4}, burst: 16},
		{stream: streamQuorum, how: client.PublisherConfig{AtLeastOnce: true, MaxBatchRecords: 2}, burst: 8},
		{stream: streamParts, how: idempotent, burst: 32, shards: 2},
		{stream: streamOwned, how: idempotent, burst: 16},
		{stream: streamOwned, burst: 1},
	} {
		f.via, f.pause = anybody(), 25*time.Millisecond
		w.publish(f, rand.New(rand.NewPCG(rng.Uint64(), 0)))
	}
	return w
}

// TestProcessSeeds kills, pauses, ends and empties brokers that are processes, at random, under load.
func TestProcessSeeds(t *testing.T) {
	trySeeds(t, func(t *testing.T, rng *rand.Rand) {
		c := newProcesses(t, 3)
		w := gather(c, rng)
		w.underWay()
		for range 4 + rng.IntN(4) {
			disturb(w, rng)
			w.letRun(rng, 0, time.Second)
			if rng.IntN(3) > 0 { // else the next misfortune comes at once
				c.startAll()
				w.underWay()
			}
			if rng.IntN(3) == 0 {
				_, stop := w.latest(streamQuorum, 0, c.members[rng.IntN(3)])
				defer stop()
			}
		}
		c.startAll()
		w.underWay()
		w.finish()
	})
}

// disturb is one misfortune. Everybody runs afterwards, or is about to.
func disturb(w *crowd, rng *rand.Rand) {
	w.t.Helper()
	c := w.c
	p := c.process(rng.IntN(len(c.members)))
	switch n := rng.IntN(100); {
	case n < 35:
		leader := c.leader(streamQuorum, 0)
		w.logf("kill the leader %s", leader.node())
		leader.killMember()
		w.letRun(rng, 0, 3*time.Second)
	case n < 50:
		w.logf("kill %s", p.name)
		p.kill()
		w.letRun(rng, 0, 2*time.Second)
	case n < 60:
		q := c.process((rng.IntN(2) + 1 + c.index(p)) % len(c.members))
		w.logf("kill %s and %s", p.name, q.name)
		p.kill()
		q.kill()
		w.letRun(rng, 0, 3*time.Second)
	case n < 67:
		w.logf("kill all")
		for i := range c.members {
			c.process(i).kill()
		}
		w.letRun(rng, 0, time.Second)
	case n < 85:
		d := time.Duration(rng.Int64N(int64(4 * time.Second)))
		w.logf("pause %s for %v", p.name, d)
		p.pause(func() { w.letRun(rng, d, d) })
		return
	case n < 95:
		w.logf("end %s", p.name)
		c.startAll() // a majority has to be there, or it cannot hand over
		p.terminate()
	default:
		c.startAll()
		c.untilInSync()
		// Not the one that alone has a stream: that would be lost, as it should.
		q := c.process(c.index(c.others(c.leader(streamQuorum, 0), c.leader(streamOwned, 0))[0]))
		w.logf("empty %s", q.name)
		q.kill()
		q.wipe()
		q.startMember()
		c.untilReady(q)
		c.untilInSync()
	}
	for i := range c.members {
		c.process(i).startMember()
	}
}
