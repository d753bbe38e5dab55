package quorum

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// littleTrail has logs end right behind snapshots.
func littleTrail(cfg *NodeConfig) { cfg.TrailingBytes = 1 }

// TestConflictingEntries: a follower with entries of its own, which its leader has
// compacted past, is installed once and goes on. // B74
func TestConflictingEntries(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, littleTrail)
	old := c.put("before")
	c.settled()
	rest := c.others(old)
	c.nw.Partition([]string{old.name}, []string{rest[0].name, rest[1].name})
	var lost []*Proposal
	for i := range 50 {
		lost = append(lost, old.group.Propose([]byte(fmt.Sprint("lost ", i))))
	}
	for i := range 100 {
		c.put(fmt.Sprint("kept ", i), rest...)
	}
	for _, h := range rest {
		if err := h.group.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range lost {
		if _, err := p.Wait(t.Context()); err == nil {
			t.Error("a proposal without a majority was applied")
		}
	}
	c.nw.HealAll()
	c.put("after")
	c.settled()
	if _, restores, _ := old.machine.count(); restores < 1 || restores > 2 {
		t.Errorf("it was installed %d times", restores)
	}
	for text := range old.machine.texts() {
		if len(text) > 4 && text[:4] == "lost" {
			t.Errorf("%q is there", text)
		}
	}
}

// TestSlowRestore: while a follower fetches for long, its leader beats on, does not begin again although the
// connection breaks, and keeps what comes after the snapshot. // B75
func TestSlowRestore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *NodeConfig) { littleTrail(cfg); calm(cfg) })
	leader := c.put("before")
	c.settled()
	away := c.others(leader)[0]
	near := c.others(leader, away)[0]
	away.stop()
	for i := range 40 {
		c.put(fmt.Sprint("entry ", i), leader, near)
	}
	for _, h := range []*host{leader, near} {
		if err := h.group.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	term := leader.group.State().Term

	var fetching atomic.Bool
	goOn := make(chan struct{})
	away.start()
	away.machine = c.world.machine(away.self())
	away.machine.onFetch = func(int) error {
		fetching.Store(true)
		<-goOn
		return nil
	}
	var err error
	if away.group, err = away.node.Open(t.Context(), 1, GroupConfig{Machine: away.machine}); err != nil {
		t.Fatal(err)
	}
	until(t, "it to fetch", fetching.Load)
	for i := range 3 {
		c.nw.Reset(leader.name, away.name)
		c.put(fmt.Sprint("meanwhile ", i), leader, near)
		if err := leader.group.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // heartbeats have to come
		if s := away.group.State(); !s.LeaderKnown || time.Since(s.LastContact) > 6*time.Second || !s.Restoring || s.Stuck != nil {
			t.Errorf("while it fetches: %+v", s)
		}
	}
	close(goOn)
	c.settled()
	if s := leader.group.State(); !s.Leading || s.Term != term {
		t.Errorf("the leader was %+v", s)
	}
	entries, restores, fetched := away.machine.count()
	if restores > 2 || fetched > entries {
		t.Errorf("%d installs, which fetched %d entries of %d", restores, fetched, entries)
	}
}

// TestInstallInterrupted: a follower that dies in the middle of an install goes on
// from the snapshot that it had, and is installed again.
func TestInstallInterrupted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, littleTrail)
	leader := c.put("before")
	c.settled()
	away := c.others(leader)[0]
	away.stop()
	for i := range 20 {
		c.put(fmt.Sprint("entry ", i), c.others(away)...)
	}
	for _, h := range c.others(away) {
		if err := h.group.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	away.start()
	away.machine = c.world.machine(away.self())
	halfway := make(chan struct{})
	closed := away.machine.closed
	away.machine.onFetch = func(i int) error {
		if i == 10 {
			close(halfway)
			<-closed
		}
		return nil
	}
	var err error
	if away.group, err = away.node.Open(t.Context(), 1, GroupConfig{Machine: away.machine}); err != nil {
		t.Fatal(err)
	}
	<-halfway
	away.stop()
	if m, _, _, err := readSnaps(away.disk, "/data/quorum/g1"); m != nil || err != nil {
		t.Errorf("a snapshot that was not restored is kept: %+v, %v", m, err)
	}
	away.restart()
	c.put("after")
	c.settled()
}

// TestFarBehindInLargeEntries: what a follower lacks comes in pieces. // B50
func TestFarBehindInLargeEntries(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *NodeConfig) { cfg.TrailingBytes, cfg.SnapshotBytes = 64<<20, 64<<20 })
	leader := c.put("before")
	away := c.others(leader)[0]
	away.stop()
	for i := range 12 {
		c.put(fmt.Sprintf("%d%s", i, make([]byte, 900<<10)), c.others(away)...)
	}
	away.restart()
	c.settled()
	if _, restores, _ := away.machine.count(); restores != 0 {
		t.Errorf("installed %d times, although the entries were there", restores)
	}
}

// TestRestartFromSnapshot: what is before it is not applied again, what is after it is.
func TestRestartFromSnapshot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for i := range 10 {
		c.put(fmt.Sprint("entry ", i))
	}
	c.settled()
	for _, h := range c.hosts {
		if err := h.group.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.group.Snapshot(t.Context()); err != nil { // nothing new
			t.Fatal(err)
		}
	}
	for i := range 10 {
		c.put(fmt.Sprint("later ", i))
	}
	c.settled()
	want := c.hosts[0].machine.state()
	for _, h := range c.hosts {
		h.stop()
	}
	for _, h := range c.hosts { // all of them with other addresses // B80, B81
		h.restart()
	}
	c.leader()
	c.settled()
	if got := c.hosts[0].machine.state(); got != want {
		t.Errorf("state after restart: %s, was %s", got, want)
	}
}

// TestLogIsBounded: snapshots are taken by themselves, and entries go with them. // B78
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *NodeConfig) { cfg.SnapshotEntries, cfg.TrailingBytes = 50, 1 })
	for i := range 200 {
		c.put(fmt.Sprint("entry ", i))
	}
	until(t, "entries to go", func() bool {
		for _, h := range c.hosts {
			if entries, err := h.log.Entries(logKey(1)); err != nil || entries.Last()-entries.First() > 100 {
				return false
			}
		}
		return true
	})
	c.settled()
}
