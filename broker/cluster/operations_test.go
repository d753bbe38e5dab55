package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"felix.dev/felix/broker/catalog"
)

// A replica goes where it is told to and stays there, and a leadership, too.
func TestMoveAndTransfer(t *testing.T) {
	w := newTown(t)
	all := w.found(4)
	ctx := t.Context()
	c := all[1].cluster
	g, _ := c.State().Group(1)
	from := g.Target[2]
	var to string
	for _, h := range all {
		if !slices.Contains(g.Target, h.node) {
			to = h.node
		}
	}
	if err := c.TransferLeader(ctx, 1, to); !errors.Is(err, ErrRefused) {
		t.Errorf("a broker without a replica is to lead: %v", err)
	}
	w.until("it is moved", func() error { return c.Move(ctx, 1, from, to) })
	if err := c.Move(ctx, 1, from, to); err != nil { // B88
		t.Errorf("again: %v", err)
	}
	w.whole(all...)
	if g, _ := c.State().Group(1); !slices.Contains(g.Target, to) || slices.Contains(g.Target, from) || g.Has(from) || !g.Has(to) {
		t.Errorf("got %+v", g)
	}
	w.until("the one that moved in leads", func() error { return c.TransferLeader(ctx, 1, to) })
	if err := c.TransferLeader(ctx, 9, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := c.Balance(ctx); err != nil {
		t.Fatal(err)
	}
	w.whole(all...)
	for _, tc := range []struct {
		group    uint32
		from, to string
		want     Code
	}{
		{9, from, to, CodeNotFound},
		{1, to, "x", CodeNotFound},
		{1, to, to, CodeInvalid},
		{1, from, from, CodeInvalid},
	} {
		if err := c.Move(ctx, tc.group, tc.from, tc.to); !errors.Is(err, &Error{Code: tc.want}) {
			t.Errorf("group %d from %s to %s: got %v", tc.group, tc.from, tc.to, err)
		}
	}
	if err := all[0].cluster.Remove(ctx, "nobody", false); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// The metadata group's own leader can be moved like any other.
func TestTransferOfTheMetadataGroup(t *testing.T) {
	w := newTown(t)
	all := w.found(3, func(c *Config) { c.Timings.Settle = time.Hour })
	leader, _ := all[0].cluster.metadataLeader()
	for _, h := range all {
		if h.node == leader {
			continue
		}
		w.until("it is handed over", func() error { return all[0].cluster.TransferLeader(t.Context(), catalog.MetadataGroup, h.node) })
		w.until("it leads", func() error {
			if now, _ := all[0].cluster.metadataLeader(); now != h.node {
				return errAt(all[0], "thinks that %q leads", now)
			}
			return nil
		})
		break
	}
	w.balanced(all...) // and it comes back
}
