package quorum

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"felix.dev/felix/broker/vfs/faultfs"
)

func TestValidate(t *testing.T) {
	err := (&NodeConfig{Timings: Timings{Heartbeat: time.Second, Election: time.Millisecond, Lease: time.Hour}, AppendTimeout: -1}).Validate()
	for _, want := range []string{"want a node", "dir is empty", "write-ahead log", "peer transport", "lease <= heartbeat", "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if _, err := NewNode(NodeConfig{}); err == nil {
		t.Error("a node was made of nothing")
	}
}

// TestMetrics: each is told.
func TestMetrics(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := map[string]bool{}
	say := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told[what] = true
	}
	c := newCluster(t, 3, func(cfg *NodeConfig) {
		littleTrail(cfg)
		calm(cfg)
		cfg.AppendTimeout = time.Second
		cfg.Metrics = Metrics{
			Leadership: func(uint32, bool) { say("leadership") },
			Proposed:   func(uint32, time.Duration, error) { say("proposed") },
			Stored:     func(uint32, int, int, time.Duration, error) { say("stored") },
			Snapshot:   func(uint32, time.Duration, error) { say("snapshot") },
			Installed:  func(uint32, time.Duration, error) { say("installed") },
			Stuck:      func(uint32, bool) { say("stuck") },
		}
	})
	away := c.others(c.put("before"))[0]
	away.stop()
	var leader *host
	for range 5 {
		leader = c.put("meanwhile", c.others(away)...)
	}
	for _, h := range c.others(away) {
		if err := h.group.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	away.restart()
	c.settled()
	_, release := leader.disk.Hold(faultfs.OpDatasync, inWAL)
	p := leader.group.Propose([]byte("x"))
	// It is given up a moment after the state says stuck: let the disk go on in between, and it is applied.
	_, err := p.Wait(t.Context())
	release()
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the proposal that hung: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]bool{"leadership": true, "proposed": true, "stored": true, "snapshot": true, "installed": true, "stuck": true}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestNodeClosesWhileStuck: not for ever.
func TestNodeClosesWhileStuck(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, quickToWorry)
	leader := c.put("before")
	_, release := leader.disk.Hold(faultfs.OpDatasync, inWAL)
	defer release()
	leader.group.Propose([]byte("into the void"))
	until(t, "it to be stuck", func() bool { return leader.group.State().Stuck != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	g := leader.group
	if err := leader.node.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	release()
	<-g.closed
}

func TestRaftLog(t *testing.T) {
	var out bytes.Buffer
	l := &raftLog{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))}
	l.Info("not said")
	l.Debug("nor this")
	l.With("peer", "n2").Warn("said", "entries", hclog.Fmt("%d of %d", 1, 2))
	l.Error("loud")
	want := "level=INFO msg=\"raft: said\" peer=n2 entries=\"1 of 2\"\nlevel=WARN msg=\"raft: loud\"\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
	if l.IsInfo() || !l.IsWarn() || !l.IsError() || l.IsTrace() || l.IsDebug() {
		t.Error("levels differ from what is logged")
	}
	if n := testing.AllocsPerRun(100, func() { l.Debug("nothing", "key", 1) }); n > 0 {
		t.Errorf("what is not logged takes %v allocations", n)
	}
}

func TestFileState(t *testing.T) {
	disk := faultfs.New(1)
	if err := disk.MkdirAll("/g1", 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s, err := FileState(disk)("/g1/state")
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Get("key"); err != nil || len(v) != i {
			t.Errorf("value %q, %v", v, err)
		}
		if err := s.Set("key", make([]byte, i+1)); err != nil {
			t.Fatal(err)
		}
		disk.SetReadOnly(true)
		if err := s.Set("key", nil); err == nil {
			t.Error("set on a disk that takes nothing")
		}
		disk.SetReadOnly(false)
	}
}
