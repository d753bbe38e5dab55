package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wal"
)

func inWAL(name string) bool { return strings.Contains(name, "/wal/") }

func quickToWorry(cfg *NodeConfig) { cfg.AppendTimeout = 300 * time.Millisecond }

// TestDiskThatHangs: a leader whose log does not come back makes room for another, and
// is well again when it does.
func TestDiskThatHangs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, quickToWorry)
	leader := c.put("before")
	rest := c.others(leader)
	_, release := leader.disk.Hold(faultfs.OpDatasync, inWAL)
	defer release()

	stuck := leader.group.Propose([]byte("into the void"))
	c.put("by another", rest...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := stuck.Wait(ctx); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("proposal that hung: %v, want ErrOutcomeUnknown", err)
	}
	until(t, "it to say that it is stuck", func() bool { return leader.group.State().Stuck != nil })
	s := leader.group.State()
	var why *StuckError
	if s.Leading || !errors.As(s.Stuck, &why) || why.What != "log store" || why.Err != nil {
		t.Errorf("state while stuck: %+v", s)
	}
	if _, err := leader.group.Propose([]byte("refused")).Wait(ctx); !errors.Is(err, ErrStuck) {
		t.Errorf("proposal to a stuck leader: %v, want ErrStuck", err)
	}
	leader.machine.mu.Lock()
	if n := len(leader.machine.changes); n == 0 || leader.machine.changes[n-1].Leading {
		t.Errorf("its owner was told %+v", leader.machine.changes)
	}
	leader.machine.mu.Unlock()

	release()
	until(t, "it to be well", func() bool { return leader.group.State().Stuck == nil })
	c.put("after")
	c.settled()
	if n := leader.machine.texts()["refused"]; n != 0 {
		t.Errorf("what was refused is there %d times", n)
	}
}

// TestCloseWhileStuck: closing does not wait for ever, and ends when the disk answers.
func TestCloseWhileStuck(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, quickToWorry)
	leader := c.put("before")
	_, release := leader.disk.Hold(faultfs.OpDatasync, inWAL)
	defer release()
	p := leader.group.Propose([]byte("into the void"))
	until(t, "it to be stuck", func() bool { return leader.group.State().Stuck != nil })

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	g := leader.group
	if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close while stuck: %v", err)
	}
	if _, err := p.Wait(t.Context()); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("proposal: %v", err)
	}
	release()
	if err := g.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
	leader.join(nil)
	c.put("after")
	c.settled()
}

// TestFullDisk: a leader whose disk is full steps down, says why, and comes back. // B82
func TestFullDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.put("before")
	rest := c.others(leader)
	leader.disk.SetSpace(0)
	big := make([]byte, 1<<20)
	full := false
	var last error
	for range 40 { // the log has room in its file for some
		_, err := leader.group.Propose(big).Wait(t.Context())
		if errors.Is(err, wal.ErrDiskFull) {
			full = errors.Is(err, ErrStuck)
		}
		last = err
		if err != nil {
			break
		}
	}
	if !full {
		t.Errorf("no proposal was refused for want of room: %v", last)
	}
	c.put("by another", rest...)
	if s := leader.group.State(); s.Leading || !errors.Is(s.Stuck, wal.ErrDiskFull) {
		t.Errorf("state with a full disk: %+v", s)
	}
	c.put("and on", rest...)
	leader.disk.SetSpace(-1)
	c.put("after")
	c.settled()
	until(t, "it to be well", func() bool { return leader.group.State().Stuck == nil })
}

// TestMachineThatHangs: a leader whose machine does not apply makes room for another.
func TestMachineThatHangs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, quickToWorry)
	leader := c.put("before")
	var once sync.Once
	let := make(chan struct{})
	var hangs atomic.Bool
	leader.machine.mu.Lock()
	leader.machine.onApply = func(uint64) {
		hangs.Store(true)
		<-let
	}
	leader.machine.mu.Unlock()
	defer once.Do(func() { close(let) })
	p := leader.group.Propose([]byte("committed, but not applied there"))
	until(t, "the machine to hang", hangs.Load)
	c.put("by another", c.others(leader)...)
	if _, err := p.Wait(t.Context()); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("proposal: %v", err)
	}
	var why *StuckError
	if s := leader.group.State(); s.Leading || !errors.As(s.Stuck, &why) || why.What != "machine" {
		t.Errorf("state: %+v", s)
	}
	once.Do(func() { close(let) })
	c.put("after")
	c.settled()
	if n := leader.machine.texts()["committed, but not applied there"]; n != 1 {
		t.Errorf("it is there %d times", n)
	}
}

// TestProposalsAreBounded: also a leader that is heard but not obeyed answers in time.
func TestProposalsAreBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *NodeConfig) {
		cfg.AppendTimeout, cfg.ProposeTimeout = time.Hour, 500*time.Millisecond
	})
	leader := c.put("before")
	var release []func()
	for _, h := range c.others(leader) {
		_, r := h.disk.Hold(faultfs.OpDatasync, inWAL)
		release = append(release, r)
	}
	defer func() {
		for _, r := range release {
			r()
		}
	}()
	var all []*Proposal
	for i := range 2 * maxProposals {
		all = append(all, leader.group.Propose([]byte(fmt.Sprint("entry ", i))))
	}
	busy := 0
	for _, p := range all {
		_, err := p.Wait(t.Context())
		switch {
		case errors.Is(err, ErrBusy):
			busy++
		case !errors.Is(err, ErrOutcomeUnknown):
			t.Fatalf("proposal: %v", err)
		}
	}
	if busy != maxProposals {
		t.Errorf("%d of %d proposals were turned away", busy, len(all))
	}
	for _, r := range release {
		r()
	}
	release = nil
	c.put("after")
	c.settled()
}
