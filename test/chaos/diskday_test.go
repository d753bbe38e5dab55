//go:build chaos

package chaos

import (
	"testing"
	"time"

	"felix.dev/felix/client"
)

// onDisk runs publishers and readers while something is done to the disk of a leader or a follower, and undone. again says that
// acknowledgements go on in the meantime.
func onDisk(t *testing.T, follower bool, do func(d *disk), check func(w *crowd, m *inproc)) {
	t.Helper()
	rng := seeded(t)
	c, _ := newInproc(t, 3, rng.Uint64())
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	for _, m := range c.members {
		w.follow(streamQuorum, 0, m)
		w.publish(flow{stream: streamQuorum, via: m, how: client.PublisherConfig{Idempotent: true, MaxBatchRecords: 4}, burst: 16, pause: 10 * time.Millisecond}, rng)
	}
	w.underWay()
	leader := c.leader(streamQuorum, 0)
	hit := leader
	if follower {
		hit = c.others(leader)[0]
	}
	p := c.inproc(hit)
	w.logf("the disk of %s, leader %s", p.node(), leader.node())
	do(p.disk)
	check(w, p)
	w.logf("it heals")
	p.disk.heal()
	w.underWay()
	c.startAll()
	c.untilInSync()
	w.logf("it is in sync")
	w.underWay()
	w.finish()
}

// B82: the leader's disk is full. Another one leads, publishes go on, the status shows it, and when there is room it takes part again.
func TestB82DiskFullOnTheLeader(t *testing.T) {
	onDisk(t, false, func(d *disk) { d.fill() }, func(w *crowd, m *inproc) {
		w.underWay()
		w.c.leader(streamQuorum, 0, m)
		w.c.until("the status shows it", func() bool {
			s, err := w.c.statusAt(w.c.others(m)[0])
			if err != nil {
				return false
			}
			for _, b := range s.Brokers {
				if b.Node == m.node() {
					return !b.InSync || b.Trouble != ""
				}
			}
			return false
		})
	})
}

func TestDiskFullOnAFollower(t *testing.T) {
	onDisk(t, true, func(d *disk) { d.fill() }, func(w *crowd, m *inproc) {
		w.underWay()
		w.letRun(seeded(w.t), 2*time.Second, 3*time.Second)
		w.underWay()
	})
}

// The leader's flushes hang: it is deposed, as it can confirm nothing, and publishes go on.
func TestFlushHangsOnTheLeader(t *testing.T) {
	onDisk(t, false, func(d *disk) { d.stuck() }, func(w *crowd, m *inproc) {
		w.underWay()
		w.c.leader(streamQuorum, 0, m)
		if _, hung := m.disk.met(); hung == 0 {
			w.t.Error("nothing hung: the test shows nothing")
		}
	})
}

func TestFlushHangsOnAFollower(t *testing.T) {
	onDisk(t, true, func(d *disk) { d.stuck() }, func(w *crowd, _ *inproc) {
		for range 5 {
			w.underWay()
		}
	})
}

// A flush of the leader's log fails. What it could not confirm is not acknowledged; it is started again, as its operator would.
func TestFlushFailsOnTheLeader(t *testing.T) {
	onDisk(t, false, func(d *disk) { d.failFlush("wal") }, func(w *crowd, m *inproc) {
		w.c.until("a flush has failed", func() bool { failed, _ := m.disk.met(); return failed > 0 })
		w.underWay()
		m.killMember()
		m.startMember()
		w.c.untilReady(m)
	})
}

func TestSlowDisk(t *testing.T) {
	for name, follower := range map[string]bool{"leader": false, "follower": true} {
		t.Run(name, func(t *testing.T) {
			onDisk(t, follower, func(d *disk) { d.slow(200 * time.Millisecond) }, func(w *crowd, _ *inproc) {
				for range 3 {
					w.underWay()
				}
			})
		})
	}
}
