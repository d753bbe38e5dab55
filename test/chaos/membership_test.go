//go:build chaos

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// lagBound is how many entries a broker that is ready may be behind under load: less than a second's worth.
const lagBound = 500

// B31, B84: all brokers are restarted one after the other under load, each when the one before says that it is ready. Readiness
// means that it has caught up: no number is lost, none comes twice, and they come in order.
func TestB31RollingRestart(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	for _, m := range c.members {
		w.follow(streamQuorum, 0, m)
	}
	w.publish(flow{stream: streamQuorum, via: c.members[0], how: client.PublisherConfig{Idempotent: true, MaxBatchRecords: 4}, burst: 32, pause: 5 * time.Millisecond}, rng)
	for range 2 {
		for i := range c.members {
			w.underWay()
			p := c.process(i)
			p.terminate()
			w.letRun(rng, 0, time.Second)
			p.startMember()
			c.untilReady(p)
			s, err := c.status()
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range s.Groups {
				for _, m := range g.Members {
					if m.Node == p.name && m.Lag > lagBound {
						t.Errorf("broker %s says that it is ready and is %d entries behind in group %d", p.name, m.Lag, g.Group)
					}
				}
			}
			c.until("the next one can stop", func() bool { // as whoever rolls waits for
				s, err := c.status()
				next := c.members[(i+1)%len(c.members)].node()
				for _, b := range s.Brokers {
					if b.Node == next {
						return err == nil && b.CanStop
					}
				}
				return false
			})
		}
	}
	c.until("ten thousand are acknowledged", func() bool { return w.rec.AckCount() >= 10_000 || w.ctx.Err() != nil })
	w.finish()
}

// B87: a follower's volume is wiped and the leader is killed at once. Who has lost what it voted for does not vote, so nobody leads
// until somebody is there who has it all; nothing that was acknowledged is lost.
func TestB87VolumeWiped(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	w.follow(streamQuorum, 0, c.members[0])
	for range 3 {
		c.startAll()
		c.untilInSync()
		stop := w.burst(flow{stream: streamQuorum, via: c.members[0], how: client.PublisherConfig{Idempotent: true}, burst: 16}, rng)
		w.underWay()
		leader := c.leader(streamQuorum, 0)
		wiped := c.process(c.index(c.others(leader)[rng.IntN(2)]))
		wiped.kill()
		w.underWay() // acknowledged by the other two
		wiped.wipe()
		wiped.startMember()
		leader.killMember()
		w.letRun(rng, time.Second, 3*time.Second)
		leader.startMember()
		w.underWay()
		stop()
	}
	c.startAll()
	c.untilInSync()
	w.finish()
}

// A broker that has the data of another cluster is not taken in, and says why.
func TestForeignDataIsRefused(t *testing.T) {
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	c.publishAll(c.dial(c.members[0]), streamQuorum, 0, 10, 1)
	stranger := newProcesses(t, 1)
	p := stranger.process(0)
	p.terminate()
	// It comes with a certificate of this cluster, and the name of a broker that is away.
	away := c.process(2)
	away.terminate()
	cfg := away.config()
	if err := os.RemoveAll(away.data()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.data(), away.data()); err != nil {
		t.Fatal(err)
	}
	away.configure(cfg)
	away.startMember()
	c.until("it refuses", func() bool {
		text, err := os.ReadFile(filepath.Join(away.dir, "broker.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(bytes.ToLower(text)), "another cluster") || away.over()
	})
	s, err := c.status()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range s.Brokers {
		if b.Node == away.name && b.Up {
			t.Errorf("it was taken in: %+v", b)
		}
	}
	c.expect(c.subscribe(c.dial(c.members[0]), streamQuorum, client.Earliest()), 0, 10)
}

// B76: a broker that was removed comes back with what it had. It is told, and disturbs nobody: no term changes.
func TestB76RemovedBrokerReturns(t *testing.T) {
	c := newProcesses(t, 4)
	c.create(streamQuorum, "Quorum")
	gone := c.process(3)
	c.publishAll(c.dial(c.members[0]), streamQuorum, 0, 10, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.http(c.members[0]).DrainBroker(ctx, gone.name, "drain"); err != nil {
		t.Fatal(err)
	}
	var last any
	c.until("it holds nothing", func() bool {
		s, err := c.status()
		if last = any(s); err != nil {
			last = err
		}
		for _, b := range s.Brokers {
			if b.Node == gone.name {
				return err == nil && !b.Holds()
			}
		}
		return false
	}, &last)
	gone.kill()
	if err := c.http(c.members[0]).RemoveBroker(ctx, gone.name, false, "remove"); err != nil {
		t.Fatal(err)
	}
	c.members = c.members[:3]
	c.untilInSync()
	before, err := c.status()
	if err != nil {
		t.Fatal(err)
	}
	gone.run()
	select {
	case <-gone.exited:
	case <-time.After(10 * time.Second):
	}
	c.publishAll(c.dial(c.members[1]), streamQuorum, 10, 20, 1)
	after, err := c.status()
	if err != nil {
		t.Fatal(err)
	}
	if b, a := terms(&before), terms(&after); b != a {
		t.Errorf("terms were %s and are %s", b, a)
	}
	c.expect(c.subscribe(c.dial(c.members[2]), streamQuorum, client.Earliest()), 0, 20)
}

// terms lists who leads what in which term.
func terms(s *admin.ClusterStatus) string {
	var b strings.Builder
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "%d:%s@%d ", g.Group, g.Leader, g.Term)
	}
	return b.String()
}

// B80, B81: a broker comes back at other addresses, and then all of them do at once.
func TestB80AddressesChange(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	stop := w.burst(flow{stream: streamQuorum, via: c.members[0], how: client.PublisherConfig{Idempotent: true}, burst: 8}, rng)
	w.underWay()
	move := func(p *process, seeds []string) {
		cfg := p.config()
		cfg.Listen, cfg.Admin.Listen, cfg.Cluster.Listen = freeUDP(t), freeTCP(t), freeTCP(t)
		cfg.Advertise, cfg.Cluster.Advertise = cfg.Listen, cfg.Cluster.Listen
		cfg.Cluster.Join = seeds
		p.addr, p.admin = cfg.Listen, cfg.Admin.Listen
		p.configure(cfg)
	}
	one := c.process(2)
	one.terminate()
	move(one, one.config().Cluster.Join)
	one.startMember()
	c.untilReady(one)
	c.untilInSync()
	w.underWay()
	stop()
	for i := range c.members {
		c.process(i).terminate()
	}
	for i := range c.members {
		move(c.process(i), nil)
	}
	// Each is told where the others are now, as a name service would.
	var peers []string
	for i := range c.members {
		peers = append(peers, c.process(i).config().Cluster.Listen)
	}
	for i := range c.members {
		cfg := c.process(i).config()
		cfg.Cluster.Join = peers
		c.process(i).configure(cfg)
	}
	c.startAll()
	c.untilInSync()
	stop = w.burst(flow{stream: streamQuorum, via: c.members[1], how: client.PublisherConfig{Idempotent: true}, burst: 8}, rng)
	w.underWay()
	stop()
	w.finish()
}

// B47: a follower is paused while the leader's retention takes what it has not stored. When it leads afterwards, all that is
// retained is there.
func TestB47RetentionAndAPausedFollower(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3)
	c.create(streamParts, "Quorum", func(s *admin.StreamSpec) { s.Retention.MaxBytes = 256 << 10 })
	w := newCrowd(c)
	w.trims[streamParts] = true
	leader := c.leader(streamParts, 0)
	slow := c.process(c.index(c.others(leader)[0]))
	stop := w.burst(flow{stream: streamParts, via: leader, how: client.PublisherConfig{Idempotent: true}, burst: 64, size: 4 << 10}, rng)
	w.underWay()
	slow.pause(func() {
		begin := w.rec.AckCount()
		c.until("ten segments are acknowledged", func() bool { return w.rec.AckCount() > begin+10*(256<<10)/2048 || w.ctx.Err() != nil })
	})
	stop()
	c.untilInSync()
	for _, m := range c.others(slow) {
		m.killMember()
	}
	c.others(slow)[0].startMember() // two of three, and one of the two was paused
	c.untilReady(c.others(slow)[0])
	c.startAll()
	w.finish()
}

// A follower that was away while more was published than logs keep catches up by a snapshot of each group, installed once, in
// bounded memory.
func TestFollowerFarBehind(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3, func(_ string, cfg *broker.Config) { cfg.Streams.SegmentBytes = 8 << 20 })
	c.create(streamQuorum, "Quorum")
	away := c.process(c.index(c.others(c.leader(streamQuorum, 0))[0]))
	away.kill()
	w := newCrowd(c)
	stop := w.burst(flow{stream: streamQuorum, via: c.others(away)[0], how: client.PublisherConfig{Idempotent: true}, burst: 64, size: 32 << 10}, rng)
	const bytes = 160 << 20
	c.until("much is acknowledged", func() bool { return w.rec.AckCount() > bytes/(16<<10) || w.ctx.Err() != nil })
	stop()
	away.startMember()
	c.untilReady(away)
	c.untilInSync()
	if n, again := away.says("snapshot installed"), away.says("snapshot was not installed"); n < 1 || n > 3 || again > 0 {
		t.Errorf("%d snapshots were installed, of at most three groups, and %d were not", n, again)
	}
	if peak := peakMemory(t, away); peak > 400<<20 {
		t.Errorf("it took %d MiB to catch up with %d MiB", peak>>20, bytes>>20)
	} else {
		t.Logf("it took %d MiB to catch up with %d MiB", peak>>20, bytes>>20)
	}
	w.finish()
}
