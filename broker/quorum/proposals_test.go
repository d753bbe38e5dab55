package quorum

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// TestRefusals: what is refused was not appended, and the error says why.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.put("before")
	follower := c.others(leader)[0]
	for _, tc := range []struct {
		what string
		g    *Group
		data []byte
		want error
	}{
		{"to a follower", follower.group, nil, ErrNotLeader},
		{"too large", leader.group, make([]byte, MaxEntryBytes+1), ErrTooLarge},
	} {
		if _, err := tc.g.Propose(tc.data).Wait(t.Context()); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.what, err, tc.want)
		}
	}
	if err := follower.group.Ready(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower is ready: %v", err)
	}
	if _, err := leader.group.Propose(nil).Wait(t.Context()); err != nil {
		t.Errorf("an empty entry: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := leader.group.Propose([]byte("x")).Wait(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that ended: %v", err)
	}
	if err := follower.group.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := follower.group.Propose(nil).Wait(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("to a closed group: %v", err)
	}
	if _, err := follower.node.Open(t.Context(), 1, GroupConfig{Machine: c.world.machine(follower.self())}); err != nil {
		t.Errorf("open again: %v", err)
	}
	if _, err := follower.node.Open(t.Context(), 1, GroupConfig{Machine: follower.machine}); !errors.Is(err, ErrExists) {
		t.Errorf("open twice: %v", err)
	}
}

// TestOrder: entries are applied in the order of the calls.
func TestOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.leader()
	var last *Proposal
	for i := range 300 {
		last = leader.group.Propose([]byte(fmt.Sprintf("%03d", i)))
	}
	if _, err := last.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader.machine.mu.Lock()
	defer leader.machine.mu.Unlock()
	for i, e := range leader.machine.entries {
		if want := fmt.Sprintf("%03d", i); e.Text != want {
			t.Fatalf("entry %d is %q, want %q", i, e.Text, want)
		}
	}
}

// TestMinority: it refuses, and does not keep anybody waiting.
func TestMinority(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, calm)
	leader := c.put("before")
	c.settled()
	mate := c.others(leader)[0]
	rest := c.others(leader, mate)
	c.nw.Partition([]string{leader.name, mate.name}, []string{rest[0].name, rest[1].name, rest[2].name})
	if _, err := leader.group.Propose([]byte("into the void")).Wait(t.Context()); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("proposal to a minority: %v, want ErrOutcomeUnknown", err)
	}
	if _, err := leader.group.Propose([]byte("late")).Wait(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("proposal to who stepped down: %v, want ErrNotLeader", err)
	}
	c.put("by the majority", rest...)
	c.nw.HealAll()
	c.settled()
	if n := leader.machine.texts()["into the void"]; n != 0 {
		t.Errorf("what the minority was given is there %d times", n)
	}
}

// TestEndWith: raft's futures still have the field that ends the wait for them.
func TestEndWith(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.leader()
	ended := make(chan struct{})
	close(ended)
	for _, h := range c.others(leader) {
		c.nw.Isolate(h.name)
	}
	for what, f := range map[string]raft.Future{
		"entry":   leader.group.raft.ApplyLog(raft.Log{Data: []byte("x")}, 0),
		"barrier": leader.group.raft.Barrier(0),
	} {
		endWith(f, ended)
		if err := f.Error(); !errors.Is(err, raft.ErrRaftShutdown) && !errors.Is(err, raft.ErrLeadershipLost) && !errors.Is(err, raft.ErrNotLeader) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
