package cluster

import (
	"errors"
	"strings"
	"testing"
)

// B84: a broker that was away knows that it lacks something until the leaders say
// that it does not.
func TestLacks(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	upToDate := func(h *house) func() error {
		return func() error {
			if lacks := h.cluster.Lacks(); len(lacks) > 0 {
				return errAt(h, "lacks %q", lacks)
			}
			return nil
		}
	}
	for _, h := range all {
		w.until("all is well", upToDate(h))
	}
	w.net.Isolate("c")
	w.until("it notices that it is cut off", func() error {
		if upToDate(all[2])() == nil {
			return errors.New("it lacks nothing")
		}
		return nil
	})
	for range 300 {
		if err := add(t.Context(), all[:2], 1); err != nil {
			t.Fatal(err)
		}
	}
	w.net.HealAll()
	w.until("it has caught up", func() error {
		if err := upToDate(all[2])(); err != nil {
			return err
		}
		// What the leader takes for caught up lacks 128 entries at most.
		if n := all[2].machines.sum(1); n < 300-128 {
			t.Fatalf("it lacks nothing, and has counted %d", n)
		}
		return nil
	})
	all[1].stop()
	all[1].must()
	w.until("it is up to date after a restart", upToDate(all[1]))
	all[0].stop()
	if err := all[0].open(); err != nil {
		t.Fatal(err)
	}
	if lacks := all[0].cluster.Lacks(); len(lacks) != 1 || !strings.Contains(lacks[0], "not known yet") {
		t.Errorf("before it has started it lacks %q", lacks)
	}
}
