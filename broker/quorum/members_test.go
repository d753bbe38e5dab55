package quorum

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReplace: a group moves to another broker without a gap.
func TestReplace(t *testing.T) {
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
		if err := leader.group.AddLearner(t.Context(), added.self()); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the learner to catch up", func() bool {
		ok, lag := leader.group.CaughtUp(added.self())
		return ok && lag == 0
	})
	if err := leader.group.Promote(t.Context(), added.self()); err != nil {
		t.Fatal(err)
	}
	if err := leader.group.Demote(t.Context(), old.self()); err != nil {
		t.Fatal(err)
	}
	if err := leader.group.Remove(t.Context(), old.self()); err != nil {
		t.Fatal(err)
	}
	members, err := leader.group.Members()
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
	leader = c.leader(rest...)
	if err := leader.group.AddLearner(t.Context(), old.self()); err != nil {
		t.Fatal(err)
	}
	c.settled()
}

// TestLeaderRemovesItself: it is the last thing it does.
func TestLeaderRemovesItself(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader := c.put("before")
	if err := leader.group.Remove(t.Context(), leader.self()); err != nil {
		t.Fatal(err)
	}
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
	if err := leader.group.AddLearner(t.Context(), wiped.self()); err != nil {
		t.Fatal(err)
	}
	until(t, "it to be promoted", func() bool {
		err := leader.group.Promote(t.Context(), wiped.self())
		if err != nil && !errors.Is(err, ErrBehind) {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := leader.group.Remove(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	c.put("with it")
	c.settled()
}

// TestPromoteTooEarly: who lacks entries gets no vote. // B87
func TestPromoteTooEarly(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader := c.put("before")
	absent := Server{Node: "nobody", Instance: "x"}
	if err := leader.group.AddLearner(t.Context(), absent); err != nil {
		t.Fatal(err)
	}
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
	c := newCluster(t, 3, nil)
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
