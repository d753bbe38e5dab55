package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wal"
)

// TestPowerCutOfAll: what was acknowledged survives all brokers losing power at once. // B48
func TestPowerCutOfAll(t *testing.T) {
	t.Parallel()
	for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Random} {
		c := newCluster(t, 3, func(cfg *NodeConfig) { cfg.SnapshotEntries, cfg.TrailingBytes = 20, 1 })
		var acked []string
		for i := range 60 {
			text := fmt.Sprint("entry ", i)
			c.put(text)
			acked = append(acked, text)
		}
		for i, h := range c.hosts {
			image := h.disk.CrashImage(policy, uint64(i))
			h.kill()
			h.disk = image
		}
		for _, h := range c.hosts {
			h.restart()
		}
		c.put("after")
		c.settled()
		texts := c.hosts[0].machine.texts()
		for _, text := range acked {
			if texts[text] == 0 {
				t.Errorf("policy %v: %q is lost", policy, text)
			}
		}
	}
}

// TestDamageAtOpen: state that cannot be trusted is refused with one clear error, and
// nothing is changed. // B79
func TestDamageAtOpen(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.put("before")
	c.settled()
	h := c.hosts[0]
	if err := h.group.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.stop()
	whole := h.disk
	const dir = "/data/quorum/g1"
	name := ""
	list, err := whole.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if filepath.Ext(e.Name()) == snapSuffix {
			name = filepath.Join(dir, e.Name())
		}
	}
	for what, damage := range map[string]func(*faultfs.FS) error{
		"state store is gone":    func(fs *faultfs.FS) error { return fs.Remove(filepath.Join(dir, stableFile)) },
		"state store is damaged": func(fs *faultfs.FS) error { return flip(fs, filepath.Join(dir, stableFile)) },
		"snapshot is damaged":    func(fs *faultfs.FS) error { return flip(fs, name) },
	} {
		h.disk = whole.CrashImage(faultfs.Keep, 1)
		if err := damage(h.disk); err != nil {
			t.Fatal(err)
		}
		h.start()
		_, err := h.node.Open(t.Context(), 1, GroupConfig{Machine: c.world.machine(h.self())})
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.Group != 1 || damaged.Path == "" {
			t.Errorf("%s: %v", what, err)
		}
		h.stop()
	}
	// The replica is made anew from its peers, as another server.
	was := h.self()
	h.wipe()
	h.start()
	h.join(nil)
	c.change("add it", func(g *Group) error { return g.AddLearner(t.Context(), h.self()) }, c.others(h)...)
	c.change("remove what it was", func(g *Group) error { return g.Remove(t.Context(), was) }, c.others(h)...)
	c.settled()
}

func flip(fs *faultfs.FS, name string) error {
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], size/2); err != nil {
		return err
	}
	b[0] ^= 4
	_, err = f.WriteAt(b[:], size/2)
	return errors.Join(err, f.Close())
}

// TestRemove: nothing of a group is left, also when a crash comes between.
func TestRemove(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.put("before")
	h := c.others(c.leader())[0]
	if err := h.node.Remove(1); !errors.Is(err, ErrExists) {
		t.Errorf("remove an open group: %v", err)
	}
	if err := h.group.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As far as a crash right after the first step:
	if err := h.disk.Rename("/data/quorum/g1", "/data/quorum/g1"+removedSuffix); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.start()
	if list, err := h.disk.ReadDir("/data/quorum"); err != nil || len(list) != 0 {
		t.Errorf("left in the directory: %v, %v", list, err)
	}
	entries, err := h.log.Entries(logKey(1))
	if err != nil || entries.Last() != 0 {
		t.Errorf("left in the log: up to %d, %v", entries.Last(), err)
	}
	if err := h.node.Remove(1); err != nil {
		t.Errorf("remove what is not there: %v", err)
	}
}

// TestPressure: an idle group lets go of what it holds when the write-ahead log is full.
func TestPressure(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *NodeConfig) { cfg.TrailingBytes = 1 << 30 })
	for i := range 10 {
		c.put(fmt.Sprint("entry ", i))
	}
	c.settled()
	for range 2 { // the second time there is nothing new to take a snapshot of
		for _, h := range c.hosts {
			h.node.Pressure([]string{"somebody else", "raft/x", logKey(77), logKey(1)})
		}
		until(t, "entries to go", func() bool {
			for _, h := range c.hosts {
				l := h.group.log
				l.mu.RLock()
				kept := l.bytes
				l.mu.RUnlock()
				if n, _ := l.grown(); n > 2 || kept > 100 {
					return false
				}
			}
			return true
		})
		c.put("one more")
	}
	c.settled()
}

// TestBoltAcrossRestarts: the file that brokers really keep their vote in.
func TestBoltAcrossRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := prepare(t, 1, nil)
	h := c.hosts[0]
	for i := range 3 {
		log, _, err := wal.Open(wal.Config{Dir: filepath.Join(dir, "wal")})
		if err != nil {
			t.Fatal(err)
		}
		h.start()
		n := newNode(NodeConfig{Self: h.self(), Dir: filepath.Join(dir, "quorum"), Timings: fast}, h.peer,
			func(key string) (entries, error) { return log.Entries(key) })
		if err := n.start(); err != nil {
			t.Fatal(err)
		}
		m := c.world.machine(h.self())
		g, err := n.Open(t.Context(), 1, GroupConfig{Machine: m, Bootstrap: c.first})
		if err != nil {
			t.Fatal(err)
		}
		until(t, "it to lead", func() bool { return g.State().Leading && g.Ready(t.Context()) == nil })
		if got := len(m.texts()); got != i {
			t.Errorf("%d entries after %d restarts", got, i)
		}
		if _, err := g.Propose([]byte(fmt.Sprint("entry ", i))).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(n.Close(t.Context()), log.Close()); err != nil {
			t.Fatal(err)
		}
		h.stop()
	}
}
