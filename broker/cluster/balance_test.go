package cluster

import (
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker/catalog"
)

// balanceScene is groups with leaders, and a clock.
type balanceScene struct {
	now     time.Time
	groups  []catalog.Group
	leaders map[uint32]string
	unfit   map[string]bool
	b       *balancer
}

func newBalanceScene(targets ...string) *balanceScene {
	s := &balanceScene{
		now: time.Unix(1000, 0), leaders: make(map[uint32]string), unfit: make(map[string]bool), b: newBalancer(10 * time.Second),
	}
	for i, target := range targets {
		s.groups = append(s.groups, catalog.Group{ID: uint32(i + 1), Target: strings.Fields(target)})
		s.leaders[uint32(i+1)] = "a"
	}
	return s
}

func (s *balanceScene) next() (handover, bool, bool) {
	return s.b.next(s.now, s.groups, func(g uint32) string { return s.leaders[g] }, func(_ uint32, node string) bool { return !s.unfit[node] })
}

// after lets time pass in steps and returns what was handed over, and when.
func (s *balanceScene) after(d time.Duration) (moved []handover, at []time.Duration) {
	for past := time.Duration(0); past < d; past += time.Second {
		if h, ok, _ := s.next(); ok {
			moved, at = append(moved, h), append(at, past)
			s.leaders[h.group] = h.to
		}
		s.now = s.now.Add(time.Second)
	}
	return moved, at
}

func TestBalanceIsGentle(t *testing.T) {
	s := newBalanceScene("a b c", "b c a", "c a b", "b a c")
	if _, ok, pending := s.next(); ok || !pending {
		t.Fatalf("a leader is left alone at first: got %v, %v", ok, pending)
	}
	moved, at := s.after(time.Minute)
	if len(moved) != 3 || moved[0] != (handover{2, "a", "b"}) || at[0] < 10*time.Second {
		t.Fatalf("got %v at %v", moved, at)
	}
	for i := range at[1:] {
		if at[i+1]-at[i] < 2*time.Second {
			t.Errorf("two at the same time: %v", at)
		}
	}
	if _, ok, pending := s.next(); ok || pending {
		t.Errorf("got %v, %v when all is well", ok, pending)
	}
}

func TestBalanceTakesWhoIsFit(t *testing.T) {
	s := newBalanceScene("b c a")
	s.unfit["b"] = true
	if moved, _ := s.after(30 * time.Second); len(moved) != 1 || moved[0].to != "c" {
		t.Errorf("got %v", moved)
	}
	s.unfit["c"] = true // and nobody is better than who leads
	s.leaders[1] = "a"
	if moved, _ := s.after(30 * time.Second); len(moved) != 0 {
		t.Errorf("got %v", moved)
	}
	s.leaders[1] = ""
	s.unfit = map[string]bool{}
	if moved, _ := s.after(30 * time.Second); len(moved) != 0 {
		t.Errorf("a group without a leader: got %v", moved)
	}
}

// TestBalanceBacksOff: a group that always comes back is handed over ever more
// rarely, and at once when somebody asks for it.
func TestBalanceBacksOff(t *testing.T) {
	s := newBalanceScene("b a")
	var tries []time.Duration
	for past := time.Duration(0); past < time.Hour; past += time.Second {
		if _, ok, _ := s.next(); ok {
			tries = append(tries, past)
		}
		s.now = s.now.Add(time.Second)
	}
	if n := len(tries); n < 5 || n > 15 {
		t.Fatalf("got %d tries in an hour: %v", n, tries)
	}
	if last := tries[len(tries)-1] - tries[len(tries)-2]; last < 5*time.Minute {
		t.Errorf("the last ones are %v apart", last)
	}
	s.b.forget()
	if _, ok, _ := s.next(); !ok {
		t.Error("nothing happens when it is asked for")
	}
	s.leaders[1] = "b"
	s.after(time.Second)
	s.now = s.now.Add(2 * maxSettle)
	s.b.calm(s.now, s.groups)
	if s.b.groups[1].tries != 0 {
		t.Error("what was tried is not forgotten when all was well for long")
	}
}
