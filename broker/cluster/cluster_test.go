package cluster

import (
	"context"
	"testing"

	"felix.dev/felix/broker/catalog"
)

func TestFoundAlone(t *testing.T) {
	w := newTown(t)
	a := w.found(1)[0]
	st := a.cluster.State()
	if st.Cluster() == "" || len(st.Brokers()) != 1 || st.Settings().Groups != 3 {
		t.Errorf("got %q, %v, %v", st.Cluster(), st.Brokers(), st.Settings())
	}
	if n := a.machines.groups(); n != 3 {
		t.Errorf("got %d groups", n)
	}
	a.stop()
	a.must() // and nothing needs to be said any more
	if again := a.cluster.State(); again.Cluster() != st.Cluster() || again.Version() < st.Version() {
		t.Errorf("after a restart: cluster %q, version %d", again.Cluster(), again.Version())
	}
	w.whole(a)
}

func TestOneBrokerBecomesThreeAndFive(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	for range 10 {
		for group := range uint32(3) {
			if err := add(t.Context(), all, group+1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, node := range []string{"d", "e"} {
		all = append(all, w.house(node).must(joins(all[1], all[2])))
	}
	w.whole(all...)
	for group := range uint32(3) {
		w.until("every replica has what was counted", func() error {
			for _, h := range all {
				if n := h.machines.sum(group + 1); n != 10 && n != -1 {
					return errAt(h, "has counted %d", n)
				}
			}
			return nil
		})
	}
	s := all[4].cluster.Status(t.Context())
	voters := 0
	for _, b := range s.Brokers {
		if b.Holds.Voter {
			voters++
		}
	}
	if voters != 5 {
		t.Errorf("%d brokers vote on the catalog", voters)
	}
	if g, ok := s.Groups[0], s.Groups[0].ID == catalog.MetadataGroup; !ok || len(g.Members) != 5 {
		t.Errorf("got %+v", g)
	}
}

// Who closes without any time leaves no replica behind: its files may be opened again
// at once.
func TestCloseWithoutTime(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = all[1].cluster.Close(over) // that it was not in order is meant
	if n := all[1].machines.groups(); n != 0 {
		t.Errorf("%d machines are left", n)
	}
	for id := range uint32(3) {
		if g, ok := all[1].cluster.Group(id + 1); ok {
			t.Errorf("group %d is still open: %+v", id+1, g.State())
		}
	}
	all[1].stop()
	all[1].must()
	w.whole(all...)
}
