//go:build chaos

package chaos

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// A minority refuses writes, says why, and its clients move over: who knows the others is acknowledged, who does not is told within the
// time that a broker holds a publish. What the deposed leader had taken and the others had not never reaches a reader.
func TestMinorityRefuses(t *testing.T) {
	rng := seeded(t)
	c, nw := newInproc(t, 3, rng.Uint64())
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	for range 3 {
		leader := c.leader(streamQuorum, 0)
		// Readers and publishers on both sides; some know nobody else.
		stuck := w.pinned(streamQuorum, leader)
		w.follow(streamQuorum, 0, c.others(leader)[0])
		stop := w.burst(flow{stream: streamQuorum, via: leader, how: client.PublisherConfig{Idempotent: true, MaxBatchRecords: 2}, burst: 32}, rng)
		w.underWay()
		nw.Isolate(leader.node())
		told := stuck.refused()
		c.until("the minority refuses", func() bool { return stuck.refused() > told+2 || w.ctx.Err() != nil })
		if err := stuck.last(); !errors.Is(err, client.ErrRetryable) && !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("the minority says %v", err)
		} else {
			t.Logf("the minority says: %v", err)
		}
		w.underWay()
		c.leader(streamQuorum, 0, leader)
		stuck.stop()
		nw.Rejoin(leader.node())
		c.untilInSync()
		w.underWay()
		stop()
	}
	w.finish()
}

// Links are cut in one direction: the leader's to one, to both, and from both.
func TestOneWayCuts(t *testing.T) {
	rng := seeded(t)
	c, nw := newInproc(t, 3, rng.Uint64())
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	for _, m := range c.members {
		w.follow(streamQuorum, 0, m)
		w.publish(flow{stream: streamQuorum, via: m, how: client.PublisherConfig{Idempotent: true}, burst: 8, pause: 10 * time.Millisecond}, rng)
	}
	for _, cut := range []func(l string, others []string){
		func(l string, o []string) { nw.CutOneWay(l, o[0]) },
		func(l string, o []string) { nw.CutOneWay(o[0], l) },
		func(l string, o []string) { nw.CutOneWay(l, o[0]); nw.CutOneWay(l, o[1]) },
		func(l string, o []string) { nw.CutOneWay(o[0], l); nw.CutOneWay(o[1], l) },
	} {
		w.underWay()
		leader := c.leader(streamQuorum, 0)
		others := c.others(leader)
		cut(leader.node(), []string{others[0].node(), others[1].node()})
		w.letRun(rng, time.Second, 3*time.Second)
		w.underWay() // a majority can talk, so it goes on
		nw.HealAll()
	}
	w.underWay()
	w.finish()
}

// B90: one slow follower does not slow acknowledgements: a majority is the leader and the faster one.
func TestB90SlowFollower(t *testing.T) {
	rng := seeded(t)
	c, nw := newInproc(t, 3, rng.Uint64())
	c.create(streamQuorum, "Quorum")
	leader := c.leader(streamQuorum, 0)
	p, err := c.dial(leader).NewPublisher(streamOf(streamQuorum), client.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p99 := func() time.Duration {
		var took []time.Duration
		for range 200 {
			begin := time.Now()
			pending, err := p.Publish(t.Context(), client.Message{Payload: []byte("x")})
			if err == nil {
				_, err = pending.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	before := p99()
	slow := c.others(leader)[0].node()
	nw.Delay(leader.node(), slow, time.Second, 0)
	nw.Delay(slow, leader.node(), time.Second, 0)
	after := p99()
	t.Logf("p99 of a publish: %v, and %v with a follower that is a second away", before, after)
	if after > 900*time.Millisecond {
		t.Errorf("p99 is %v with a slow follower, and was %v: it waits for the slow one", after, before)
	}
}

// B76: a broker that was alone for long comes back and unseats nobody: groups that others lead keep leader and term.
func TestB76IsolatedBrokerReturns(t *testing.T) {
	rng := seeded(t)
	c, nw := newInproc(t, 3, rng.Uint64())
	c.create(streamQuorum, "Quorum")
	for _, m := range c.members {
		c.untilBalanced()
		c.untilInSync()
		witness := c.others(m)[0]
		before := c.ledByOthers(witness, m, nil)
		nw.Isolate(m.node())
		timer := time.NewTimer(15 * time.Second)
		<-timer.C
		nw.Rejoin(m.node())
		c.untilInSync()
		if after := c.ledByOthers(witness, m, before); terms(before) != terms(after) {
			t.Errorf("the groups that %s did not lead were led %s, and are led %s since it is back", m.node(), terms(before), terms(after))
		}
	}
}

// ledByOthers is how a broker sees the groups that another one does not lead, or those that were seen before.
func (c *cluster) ledByOthers(witness, m member, before *admin.ClusterStatus) *admin.ClusterStatus {
	c.t.Helper()
	s, err := c.statusAt(witness)
	if err != nil {
		c.t.Fatal(err)
	}
	s.Groups = slices.DeleteFunc(s.Groups, func(g admin.ClusterGroup) bool {
		if before == nil {
			return g.Leader == m.node()
		}
		return !slices.ContainsFunc(before.Groups, func(b admin.ClusterGroup) bool { return b.Group == g.Group })
	})
	return &s
}

// untilBalanced waits until everybody leads what it should.
func (c *cluster) untilBalanced() {
	c.t.Helper()
	var last any
	c.until("leaders are where they belong", func() bool {
		s, err := c.status()
		if last = any(s); err != nil {
			last = err
			return false
		}
		for _, g := range s.Groups {
			if g.Leader == "" || g.Group > 0 && g.Leader != g.Target[0] {
				return false
			}
		}
		return len(s.Groups) > 1
	}, &last)
}

// The wall clocks are stepped, forwards and backwards, of the leader and of a follower: nobody's lease depends on them, and what is
// retained by age is not gone early.
func TestClockSteps(t *testing.T) {
	rng := seeded(t)
	c, _ := newInproc(t, 3, rng.Uint64())
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	w.follow(streamQuorum, 0, c.members[0])
	w.publish(flow{stream: streamQuorum, via: c.members[1], how: client.PublisherConfig{Idempotent: true}, burst: 16, pause: 10 * time.Millisecond}, rng)
	w.underWay()
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour, 24 * time.Hour, -24 * time.Hour} {
		c.inproc(c.leader(streamQuorum, 0)).clock.step(step)
		w.letRun(rng, 500*time.Millisecond, time.Second)
		c.inproc(c.others(c.leader(streamQuorum, 0))[0]).clock.step(-step)
		w.underWay()
	}
	w.finish()
}

// TestNetworkSeeds disturbs network, disks and clocks at random, under load.
func TestNetworkSeeds(t *testing.T) {
	trySeeds(t, func(t *testing.T, rng *rand.Rand) {
		c, nw := newInproc(t, 3, rng.Uint64())
		w := gather(c, rng)
		w.underWay()
		for range 4 + rng.IntN(4) {
			what, heal := misfortune(c, nw, rng)
			w.logf("%s", what)
			w.letRun(rng, 0, 4*time.Second)
			if rng.IntN(4) == 0 { // two at once
				what, also := misfortune(c, nw, rng)
				w.logf("and %s", what)
				w.letRun(rng, 0, 2*time.Second)
				also()
			}
			heal()
			nw.HealAll()
			if rng.IntN(3) > 0 {
				w.underWay()
			}
		}
		for _, m := range c.members {
			c.inproc(m).disk.heal()
			nw.Rejoin(m.node())
		}
		c.startAll()
		c.untilInSync()
		w.underWay()
		w.finish()
	})
}

// misfortune begins something that heal ends.
func misfortune(c *cluster, nw network, rng *rand.Rand) (what string, heal func()) {
	c.t.Helper()
	i := rng.IntN(len(c.members))
	one, other := c.members[i], c.members[(i+1+rng.IntN(len(c.members)-1))%len(c.members)]
	p, nothing := c.inproc(one), func() {}
	switch rng.IntN(11) {
	case 0:
		nw.Isolate(one.node())
		return "isolate " + one.node(), func() { nw.Rejoin(one.node()) }
	case 1:
		leader := c.leader(streamQuorum, 0)
		nw.Isolate(leader.node())
		return "isolate the leader " + leader.node(), func() { nw.Rejoin(leader.node()) }
	case 2:
		nw.Cut(one.node(), other.node())
		return "cut " + one.node() + " and " + other.node(), nothing
	case 3:
		nw.CutOneWay(one.node(), other.node())
		return "cut " + one.node() + " to " + other.node(), nothing
	case 4:
		by := time.Duration(rng.Int64N(int64(time.Second)))
		nw.Delay(one.node(), other.node(), by, by/2)
		return "delay " + one.node() + " to " + other.node() + " by " + by.String(), nothing
	case 5:
		nw.Flaky(one.node(), other.node(), 50)
		return "lose connections of " + one.node() + " and " + other.node(), nothing
	case 6:
		p.clock.step(time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour)
		return "step the clock of " + one.node(), nothing
	case 7:
		by := time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
		p.disk.slow(by)
		return "flushes of " + one.node() + " take " + by.String(), p.disk.heal
	case 8:
		p.disk.stuck()
		return "flushes of " + one.node() + " hang", p.disk.heal
	case 9:
		p.disk.fill()
		return "the disk of " + one.node() + " is full", p.disk.heal
	default:
		p.killMember()
		return "kill " + one.node(), one.startMember
	}
}

// network is what a misfortune needs of one.
type network interface {
	Isolate(node string)
	Rejoin(node string)
	Cut(a, b string)
	CutOneWay(from, to string)
	Delay(from, to string, delay, jitter time.Duration)
	Flaky(a, b string, oneIn int)
	HealAll()
}
