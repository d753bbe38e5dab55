package quorum

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// change has whoever leads of the hosts change members, until it is done: leadership may move.
func (c *cluster) change(what string, change func(*Group) error, among ...*host) {
	c.t.Helper()
	until(c.t, what, func() bool {
		err := change(c.leader(among...).group)
		if err != nil && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrBehind) && !errors.Is(err, ErrStuck) {
			c.t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// TestReplace: a group moves to another broker without a gap.
func TestReplace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for i := range 10 {
		c.put(fmt.Sprint("entry ", i))
	}
	leader := c.leader()
	old := c.others(leader)[0]
	added := c.add()
	added.start()
	added.join(nil)
	if err := leader.group.Promote(t.Context(), added.self()); !errors.Is(err, ErrNotMember) {
		t.Errorf("promote a stranger: %v", err)
	}
	for range 2 { // the second does nothing
		c.change("add a learner", func(g *Group) error { return g.AddLearner(t.Context(), added.self()) })
	}
	until(t, "the learner to catch up", func() bool {
		ok, lag := c.leader().group.CaughtUp(added.self())
		return ok && lag == 0
	})
	c.change("promote it", func(g *Group) error { return g.Promote(t.Context(), added.self()) })
	c.change("demote another", func(g *Group) error { return g.Demote(t.Context(), old.self()) })
	c.change("remove that", func(g *Group) error { return g.Remove(t.Context(), old.self()) })
	members, err := c.leader(c.others(old)...).group.Members()
	if err != nil {
		t.Fatal(err)
	}
	var want []Member
	for _, h := range c.others(old, added) {
		want = append(want, Member{Server: h.self(), Voter: true})
	}
	want = append(want, Member{Server: added.self(), Voter: true})
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if err := old.group.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := old.node.Remove(1); err != nil {
		t.Fatal(err)
	}
	rest := c.others(old)
	c.put("after", rest...)
	c.settled(rest...)

	// And back again: it is empty, and learns all.
	old.join(nil)
	c.change("add it again", func(g *Group) error { return g.AddLearner(t.Context(), old.self()) }, rest...)
	c.settled()
}

// TestLeaderRemovesItself: it is the last thing it does.
func TestLeaderRemovesItself(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	var leader *host
	c.change("the leader to remove itself", func(*Group) error {
		if leader != nil { // the answer to its first try is not known
			return c.leader(c.others(leader)...).group.Remove(t.Context(), leader.self())
		}
		leader = c.put("before")
		return leader.group.Remove(t.Context(), leader.self())
	})
	rest := c.others(leader)
	c.put("after", rest...)
	c.settled(rest...)
	if s := leader.group.State(); s.Leading || s.Voter {
		t.Errorf("state after its removal: %+v", s)
	}
}

// TestWipedVolume: a broker whose volume was wiped is another server: it has no vote
// until it has caught up. // B87
func TestWipedVolume(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.put("acked")
	c.settled()
	wiped := c.others(leader)[0]
	witness := c.others(leader, wiped)[0]
	was := wiped.self()
	wiped.stop()
	wiped.wipe()
	wiped.start()
	wiped.join(nil)
	// The leader and it alone would be two of three, were it what it was.
	c.nw.Isolate(witness.name)
	until(t, "the leader to miss a majority", func() bool { return !leader.group.State().Leading })
	time.Sleep(4 * fast.Election)
	for _, h := range []*host{leader, wiped} {
		if s := h.group.State(); s.Leading {
			t.Errorf("%s leads with a vote of a wiped volume: %+v", h.name, s)
		}
	}
	c.nw.HealAll()
	c.nw.Rejoin(witness.name)

	leader = c.put("after", leader, witness)
	c.change("add it", func(g *Group) error { return g.AddLearner(t.Context(), wiped.self()) }, leader, witness)
	c.change("promote it", func(g *Group) error { return g.Promote(t.Context(), wiped.self()) }, leader, witness)
	c.change("remove what it was", func(g *Group) error { return g.Remove(t.Context(), was) })
	c.put("with it")
	c.settled()
}

// TestPromoteTooEarly: who lacks entries gets no vote. // B87
func TestPromoteTooEarly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.put("before")
	absent := Server{Node: "nobody", Instance: "x"}
	c.change("add it", func(g *Group) error { return g.AddLearner(t.Context(), absent) })
	leader := c.leader()
	if err := leader.group.Promote(t.Context(), absent); !errors.Is(err, ErrBehind) {
		t.Errorf("promote: %v, want ErrBehind", err)
	}
	if err := leader.group.Transfer(t.Context(), absent); !errors.Is(err, ErrNotVoter) {
		t.Errorf("transfer: %v, want ErrNotVoter", err)
	}
	c.put("after")
}

// TestOneChangeAtATime: changes wait for each other, and not for ever.
func TestOneChangeAtATime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.put("before")
	for _, h := range c.others(leader) {
		c.nw.CutOneWay(leader.name, h.name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	x := Server{Node: "x", Instance: "1"}
	results := make(chan error, 2)
	for range 2 {
		go func() { results <- leader.group.AddLearner(ctx, x) }()
	}
	for range 2 {
		if err := <-results; err == nil {
			t.Error("a change of members succeeded without a majority")
		}
	}
	c.nw.HealAll()
	c.put("after")
	c.settled()
}

// TestSlowFollower: it does not slow those who wait for a majority. // B90
func TestSlowFollower(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.put("before")
	slow := c.others(leader)[0]
	c.nw.Delay(leader.name, slow.name, 400*time.Millisecond, 0)
	c.nw.Delay(slow.name, leader.name, 400*time.Millisecond, 0)
	late := 0
	for i := range 50 {
		began := time.Now()
		if _, err := leader.group.Propose([]byte(fmt.Sprint("entry ", i))).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > 400*time.Millisecond {
			late++
		}
	}
	if late > 5 { // the machine that tests run on is slow at times too
		t.Errorf("%d of 50 entries took as long as the slow follower", late)
	}
	c.nw.HealAll()
	c.settled()
}
