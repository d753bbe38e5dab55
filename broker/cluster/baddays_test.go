package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker/catalog"
)

// kill ends a broker without letting it say goodbye: nobody reaches it any more, and
// what it says reaches nobody.
func (h *house) kill() {
	h.w.net.Isolate(h.node)
	h.stop()
	h.w.net.HealAll()
}

// B87: a broker whose volume was wiped comes back as another server. The old one is
// taken out of every group, the new one learns and votes once it has caught up.
func TestWipedVolume(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	for range 20 {
		if err := add(t.Context(), all, 1); err != nil {
			t.Fatal(err)
		}
	}
	old := all[2].instance
	all[2].kill()
	all[2].wipe()
	all[2].must(joins(all[0]))
	w.whole(all...)
	for _, g := range all[0].cluster.State().Groups() {
		for _, m := range g.Members {
			if m.Instance == old || m.Node == "c" && m.Instance != all[2].instance {
				t.Errorf("group %d still has %v", g.ID, m)
			}
		}
	}
	w.until("it has what was counted", func() error {
		if n := all[2].machines.sum(1); n != 20 {
			return errAt(all[2], "has counted %d", n)
		}
		return nil
	})
	if b, ok := all[1].cluster.State().Broker("c"); !ok || b.Instance != all[2].instance {
		t.Errorf("got %+v", b)
	}
	// What is left of the old one may not come back.
	again := &house{w: w, node: "c", instance: old, dir: t.TempDir()}
	all[2].stop()
	if err := again.start(patience, joins(all[0])); !errors.Is(err, ErrRemoved) {
		t.Errorf("the old instance comes back: %v", err)
	}
}

// A node id is one broker's: another one is refused as long as the first lives.
func TestNodeIDIsTaken(t *testing.T) {
	w := newTown(t)
	a, b := w.house("a").must(founds), w.house("b")
	b.must(joins(a))
	w.whole(a, b)
	twin := &house{w: w, node: "b", instance: newInstance(), dir: t.TempDir(), numbered: true}
	addr := w.names[b.name()]
	if err := twin.open(joins(a)); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.names[b.name()] = addr // opening the twin took the name; it is still the other's
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := twin.cluster.Start(ctx)
	if !errors.Is(err, ErrTaken) {
		t.Fatalf("got %v", err)
	}
}

func TestDrainAndRemove(t *testing.T) {
	w := newTown(t)
	all := w.found(4)
	ctx := t.Context()
	if err := all[0].cluster.Remove(ctx, "c", false); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "drain it") {
		t.Errorf("a broker that holds something is removed: %v", err)
	}
	if err := all[0].cluster.SetDraining(ctx, "x", true); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	// The one that leads the metadata group is the hard one.
	for range 2 { // the second time it is so already
		if err := all[3].cluster.SetDraining(ctx, "a", true); err != nil {
			t.Fatal(err)
		}
	}
	w.until("a is drained", func() error {
		for _, b := range all[1].cluster.Status(ctx).Brokers {
			if b.NodeID == "a" && !b.Holds.Nothing() {
				return errAt(all[0], "holds %+v", b.Holds)
			}
		}
		return nil
	})
	w.until("a has no replica", func() error {
		if n := all[0].machines.groups(); n != 0 {
			return errAt(all[0], "has %d", n)
		}
		return nil
	})
	if err := add(ctx, all, 1); err != nil {
		t.Errorf("the group without a: %v", err)
	}
	if err := all[1].cluster.SetDraining(ctx, "a", false); err != nil {
		t.Fatal(err)
	}
	w.whole(all...)
	if err := all[1].cluster.SetDraining(ctx, "a", true); err != nil {
		t.Fatal(err)
	}
	w.until("a is removed", func() error { return all[2].cluster.Remove(ctx, "a", false) })
	select {
	case <-all[0].cluster.Done():
	case <-time.After(patience):
		t.Fatal("a does not stop")
	}
	if err := all[0].cluster.Err(); !errors.Is(err, ErrRemoved) {
		t.Errorf("a says %v", err)
	}
	if err := all[2].cluster.Remove(ctx, "a", false); err != nil && !errors.Is(err, ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
	w.whole(all[1:]...)
	// With its data it is refused, without it it is a new broker.
	all[0].stop()
	if err := all[0].start(patience, joins(all[1])); !errors.Is(err, ErrRemoved) {
		t.Errorf("a comes back with its data: %v", err)
	}
	all[0].wipe()
	all[0].must(joins(all[1]))
	w.whole(all...)
}

// B76: a broker that was away while it was removed comes back, learns that it was,
// and unseats nobody.
func TestRemovedWhileAway(t *testing.T) {
	w := newTown(t)
	w.calm()
	all := w.found(4)
	ctx := t.Context()
	w.net.Isolate("d")
	if err := all[0].cluster.SetDraining(ctx, "d", true); err != nil {
		t.Fatal(err)
	}
	w.until("d is removed", func() error { return all[0].cluster.Remove(ctx, "d", false) })
	w.whole(all[:3]...)
	_, before, _ := all[0].cluster.Leader(catalog.MetadataGroup)
	w.net.HealAll()
	select {
	case <-all[3].cluster.Done():
	case <-time.After(patience):
		t.Fatal("d does not stop")
	}
	if err := all[3].cluster.Err(); !errors.Is(err, ErrRemoved) {
		t.Errorf("d says %v", err)
	}
	if _, after, _ := all[0].cluster.Leader(catalog.MetadataGroup); after != before {
		t.Errorf("term %d became %d", before, after)
	}
}

// B80: every broker comes back with another address behind its name, at once.
func TestAllAddressesChange(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	version := all[0].cluster.State().Version()
	restartAll(t, all)
	w.whole(all...)
	if got := all[0].cluster.State().Version(); got < version {
		t.Errorf("version %d became %d", version, got)
	}
	if err := add(t.Context(), all, 2); err != nil {
		t.Error(err)
	}
}

// B81: brokers that register numbers come back on other ports: one of them, which
// tells the others, and all of them, which need a list of where to ask.
func TestNewPorts(t *testing.T) {
	w := newTown(t)
	a := w.house("a")
	b, c := w.house("b"), w.house("c")
	all := []*house{a, b, c}
	for _, h := range all {
		h.numbered = true
	}
	a.must(founds)
	b.must(joins(a))
	c.must(joins(a))
	w.whole(all...)
	b.stop()
	b.must()
	w.whole(all...)
	at, _ := b.cluster.State().Broker("b")
	for _, h := range []*house{a, c} {
		w.until("the new port is known", func() error {
			if addr, _ := h.cluster.Resolve("b"); addr != at.Peer {
				return errAt(h, "thinks that b is at %s instead of %s", addr, at.Peer)
			}
			return nil
		})
	}
	restartAll(t, all, joins(a, b, c))
	w.whole(all...)
}

func restartAll(t *testing.T, all []*house, change ...func(*Config)) {
	t.Helper()
	for _, h := range all {
		h.stop()
	}
	started := make(chan error, len(all))
	for _, h := range all {
		if err := h.open(change...); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, h := range all {
		go func() { started <- h.cluster.Start(ctx) }()
	}
	for range all {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
}

// A broker that is cut off refuses changes and says why; the others go on.
func TestMinorityRefuses(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	w.net.Isolate("a")
	w.until("the others go on", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := all[1].cluster.Propose(ctx, catalog.SetSettings{Settings: catalog.Settings{MaxStreams: 77}})
		return err
	})
	var err error
	w.until("the minority knows that it is one", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = all[0].cluster.Propose(ctx, catalog.SetSettings{Settings: catalog.Settings{MaxStreams: 78}})
		if !errors.Is(err, ErrNoLeader) || !strings.Contains(err.Error(), "missing: b, c") {
			return err
		}
		return nil
	})
	var e *Error
	if !errors.As(err, &e) || !e.Retryable() {
		t.Errorf("got %v", err)
	}
	if s := all[0].cluster.Status(t.Context()); !strings.Contains(s.Problem, "1 of its 3 voters") {
		t.Errorf("the status says %q", s.Problem)
	}
	w.net.HealAll()
	w.whole(all...)
	if got := all[0].cluster.State().Settings().MaxStreams; got != 77 {
		t.Errorf("got %d", got)
	}
}
