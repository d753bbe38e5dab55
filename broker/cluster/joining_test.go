package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker/catalog"
)

// A broker with another cluster's data refuses to join, and says so.
func TestAnotherClustersData(t *testing.T) {
	w := newTown(t)
	a, x := w.house("a").must(founds), w.house("x").must(founds)
	x.stop()
	x.must(joins(a)) // it has its cluster, and needs nobody of the list
	// As a member of a cluster that is away it asks the list.
	y := w.house("y")
	y.must(joins(x))
	w.whole(x, y)
	x.stop()
	y.stop()
	if err := y.start(patience, joins(a)); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), a.cluster.State().Cluster()) {
		t.Errorf("got %v", err)
	}
	if n := len(a.cluster.State().Brokers()); n != 1 {
		t.Errorf("the cluster has %d brokers", n)
	}
}

// A broker with streams of its own does not join with them.
func TestStreamsOfItsOwn(t *testing.T) {
	w := newTown(t)
	a := w.house("a").must(founds)
	single, err := catalog.Open(catalog.Config{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	name := catalog.Name{Tenant: "t", Namespace: "n", Stream: "s"}
	if _, _, err := single.Create(catalog.StreamSpec{Name: name}, ""); err != nil {
		t.Fatal(err)
	}
	own := func(c *Config) { c.Import = single.State() }
	if err := w.house("b").start(patience, joins(a), own); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
	c := w.house("c").must(founds, own)
	e, err := c.cluster.State().Get(name)
	if err != nil || len(e.Places) != 1 || e.Places[0].Owner != "c" || c.cluster.State().Importing() {
		t.Errorf("founding with streams: %+v, %v", e, err)
	}
}

// A data directory keeps its node id.
func TestAnotherNodesData(t *testing.T) {
	w := newTown(t)
	a := w.house("a").must(founds)
	a.stop()
	b := &house{w: w, node: "b", instance: a.instance, dir: a.dir}
	if err := b.start(patience); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

// All brokers start at once with one configuration, of which one is to found: there
// is one cluster in the end, whoever comes first.
func TestAllStartAtOnce(t *testing.T) {
	w := newTown(t)
	var all []*house
	for _, node := range []string{"a", "b", "c"} {
		all = append(all, w.house(node))
	}
	list := joins(all...)
	for i, h := range all {
		// Even two that are to found do not make two clusters.
		if err := h.open(list, func(c *Config) { c.Found = i < 2 }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started := make(chan error, len(all))
	for _, h := range slices.Backward(all) {
		go func() { started <- h.cluster.Start(ctx) }()
	}
	for range all {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	w.whole(all...)
}

// Who is to found does not while somebody of the list has not answered: that one
// may belong to a cluster.
func TestNobodyAnswersIsNoReasonToFound(t *testing.T) {
	w := newTown(t)
	a, b := w.house("a"), w.house("b")
	err := a.start(time.Second, founds, joins(a, b))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "b.test:1") {
		t.Errorf("got %v", err)
	}
	if a.cluster.State().Cluster() != "" {
		t.Error("it has founded a cluster")
	}
}

// A broker whose part of the metadata group is gone does not pretend to be new.
func TestMetadataIsGone(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	all[1].stop()
	book := all[1].dir
	all[1].dir = t.TempDir()
	copyFile(t, book+"/"+bookFile, all[1].dir+"/"+bookFile)
	err := all[1].start(patience)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeDamaged {
		t.Errorf("got %v", err)
	}
}

// Brokers are stopped and started one after the other, as an upgrade does, each
// once the others are in sync (B84); nothing that was counted is lost.
func TestRollingRestart(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	counted := 0
	for _, h := range all {
		for range 10 {
			if err := add(t.Context(), all, 1); err != nil {
				t.Fatal(err)
			}
			counted++
		}
		h.stop()
		w.until("the others say that no other may be stopped", func() error {
			for _, other := range all {
				if other == h {
					continue
				}
				for _, b := range other.cluster.Status(t.Context()).Brokers {
					if b.NodeID != h.node && b.CanStop {
						return errAt(other, "says that %s can stop", b.NodeID)
					}
				}
			}
			return nil
		})
		h.must()
		w.whole(all...)
	}
	for _, h := range all {
		w.until("everything is there", func() error {
			if n := h.machines.sum(1); n != counted {
				return errAt(h, "has counted %d of %d", n, counted)
			}
			return nil
		})
	}
}

// B79: a raft file that is damaged is said, and ends the broker; rebuilt from the
// others it is whole again.
func TestDamagedRaftFiles(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	for _, group := range []string{"g0", "g1"} {
		all[2].stop()
		file := filepath.Join(all[2].dir, "groups", group, "stable.bolt")
		if err := os.WriteFile(file, []byte("this is no bolt file, and never was"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := all[2].start(patience)
		if err == nil {
			select {
			case <-all[2].cluster.Done():
				err = all[2].cluster.Err()
			case <-time.After(patience):
			}
		}
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v", group, err)
		}
		all[2].stop()
		all[2].wipe()
		all[2].must(joins(all[0]))
		w.whole(all...)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
