package quorum

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestIsolatedNodeReturns: who was away does not unseat the leader. // B76
func TestIsolatedNodeReturns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.put("before")
	away := c.others(leader)[0]
	term := leader.group.State().Term
	c.nw.Isolate(away.name)
	until(t, "it to miss its leader", func() bool { return !away.group.State().LeaderKnown })
	// It stands for election over and over meanwhile, in vain and without a new term.
	for i := range 40 {
		c.put(fmt.Sprint("while away ", i), leader, c.others(leader, away)[0])
		time.Sleep(50 * time.Millisecond)
	}
	c.nw.Rejoin(away.name)
	c.settled()
	if s := leader.group.State(); !s.Leading || s.Term != term || away.group.State().Term != term {
		t.Errorf("leader is %+v, was in term %d; the one that was away: %+v", s, term, away.group.State())
	}
}

// TestRemovedNodeReturns: a member that was removed while it was away cannot disturb. // B76
func TestRemovedNodeReturns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	gone := c.others(c.put("before"))[0]
	c.nw.Isolate(gone.name)
	c.change("remove it", func(g *Group) error { return g.Remove(t.Context(), gone.self()) }, c.others(gone)...)
	leader := c.leader(c.others(gone)...)
	term := leader.group.State().Term
	until(t, "it to miss its leader", func() bool { return !gone.group.State().LeaderKnown })
	if got := gone.group.State().Term; got > term {
		t.Errorf("it raised the term to %d all by itself", got)
	}
	c.nw.Rejoin(gone.name)
	for i := range 20 {
		c.put(fmt.Sprint("after ", i), leader, c.others(leader, gone)[0])
		time.Sleep(50 * time.Millisecond)
	}
	if s := leader.group.State(); !s.Leading || s.Term != term {
		t.Errorf("leader is %+v, was in term %d", s, term)
	}
}

// TestLearnerNeverLeads: not by transfer, not by itself. // B77
func TestLearnerNeverLeads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	c.put("before")
	learner := c.add()
	learner.start()
	learner.join(nil)
	c.change("add a learner", func(g *Group) error { return g.AddLearner(t.Context(), learner.self()) })
	c.put("with a learner")
	c.settled()
	for range 3 {
		leader := c.leader()
		if err := leader.group.Transfer(t.Context(), learner.self()); !errors.Is(err, ErrNotVoter) {
			t.Errorf("transfer to a learner: %v, want ErrNotVoter", err)
		}
		// A leader of another make might ask it all the same.
		err := leader.group.trans.TimeoutNow(raft.ServerID(learner.self().String()), raft.ServerAddress(learner.self().String()),
			&raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
		if err == nil {
			t.Error("a learner takes an order to stand for election")
		}
		if err := leader.group.Transfer(t.Context(), Server{}); err != nil {
			t.Logf("transfer: %v", err)
		}
		c.put("after a transfer")
	}
	leader := c.put("last")
	c.settled()
	term := leader.group.State().Term
	until(t, "the learner to know the term", func() bool { return learner.group.State().Term == term })
	c.nw.Isolate(learner.name)
	until(t, "it to miss its leader", func() bool { return !learner.group.State().LeaderKnown })
	time.Sleep(3 * time.Second) // elections that it must not stand for
	if s := learner.group.State(); s.Term != term || s.Leading || s.Voter {
		t.Errorf("the learner is %+v, the term was %d", s, term)
	}
	c.nw.Rejoin(learner.name)
	c.settled()
	if s := leader.group.State(); !s.Leading || s.Term != term {
		t.Errorf("leader is %+v, was in term %d", s, term)
	}
	if len(learner.machine.changes) != 0 {
		t.Errorf("a learner was told %+v", learner.machine.changes)
	}
}

// TestCloseGivesLeadershipAway: the others need no timeout to find out.
func TestCloseGivesLeadershipAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.put("before")
	c.settled()
	term := leader.group.State().Term
	machine := leader.machine
	if err := leader.group.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest := c.others(leader)
	if !slices.ContainsFunc(rest, func(h *host) bool { return h.group.State().Term > term }) {
		t.Errorf("nobody had stood for election when Close returned: %s", c)
	}
	c.put("after", rest...)
	machine.mu.Lock()
	defer machine.mu.Unlock()
	if n := len(machine.changes); n == 0 || machine.changes[n-1].Leading {
		t.Errorf("the machine's owner was told %+v", machine.changes)
	}
}

// TestTransfer: leadership goes where it is told to.
func TestTransfer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for _, to := range c.hosts {
		until(t, "leadership to move", func() bool {
			leader := c.put("before")
			if leader == to {
				return true
			}
			err := leader.group.Transfer(t.Context(), to.self())
			return err == nil && c.leader() == to
		})
	}
	follower := c.others(c.leader())[0]
	if err := follower.group.Transfer(t.Context(), Server{}); !errors.Is(err, ErrNotLeader) {
		t.Errorf("transfer by a follower: %v", err)
	}
	if err := c.leader().group.Transfer(t.Context(), Server{Node: "x", Instance: "y"}); !errors.Is(err, ErrNotMember) {
		t.Errorf("transfer to a stranger: %v", err)
	}
}

// BenchmarkFailover says how long a dead leader is missed with the default timings:
// from its death to the next entry that is applied, in milliseconds.
func BenchmarkFailover(b *testing.B) {
	c := newCluster(b, 3, func(cfg *NodeConfig) { cfg.Timings = Timings{} })
	var took []time.Duration
	for i := range b.N {
		old := c.put(fmt.Sprint("before ", i))
		c.settled()
		c.nw.Isolate(old.name)
		for _, o := range c.others(old) {
			c.nw.Reset(old.name, o.name)
		}
		began := time.Now()
		c.put(fmt.Sprint("after ", i), c.others(old)...)
		took = append(took, time.Since(began))
		old.end(patience)
		c.nw.Rejoin(old.name)
		old.restart()
		c.settled()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms-max")
}
