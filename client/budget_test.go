package client

import (
	"slices"
	"testing"
)

func TestBudget(t *testing.T) {
	b := &budget{maxBytes: 100, maxRecords: 3}
	if !b.take(500) {
		t.Fatal("a record above the limit was not let in alone")
	}
	if b.take(1) {
		t.Fatal("a record was let in beside one above the limit")
	}
	b.give(500, 1)
	if !b.take(60) || !b.take(40) {
		t.Fatal("100 bytes did not fit 100")
	}
	large := b.wait(90)
	small := b.wait(1)
	if b.take(0) {
		t.Error("a record passed those that wait")
	}
	b.give(40, 1)
	if len(large.granted)+len(small.granted) != 0 {
		t.Error("the small one passed the large one")
	}
	b.give(60, 1)
	if len(large.granted) != 1 || len(small.granted) != 1 {
		t.Error("there is room for both, but they still wait")
	}
	third, fourth := b.wait(1), b.wait(1)
	if len(third.granted) != 0 {
		t.Error("granted before anything was given back")
	}
	b.giveUp(third)
	b.give(1, 1)
	if len(fourth.granted) != 1 {
		t.Error("one that gave up holds up the next")
	}
	// One that gives up at the moment it was granted gives the room back.
	fifth := b.wait(1)
	b.giveUp(fourth)
	b.giveUp(fifth)
	if b.bytes != 90 || b.records != 1 || len(b.waiting) != 0 {
		t.Errorf("in use: %d bytes, %d records, %d waiting; want 90, 1, 0", b.bytes, b.records, len(b.waiting))
	}
}

func TestBudgetOrder(t *testing.T) {
	b := &budget{maxBytes: 10, maxRecords: 100}
	b.take(10)
	var waiters []*roomWaiter
	for range 5 {
		waiters = append(waiters, b.wait(4))
	}
	granted := func() []int {
		var n []int
		for i, w := range waiters {
			if w.done {
				n = append(n, i)
			}
		}
		return n
	}
	b.give(10, 1)
	if got := granted(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("after 10 bytes: granted %v, want the first two", got)
	}
	b.give(8, 2)
	if got := granted(); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("after 8 more: granted %v, want the first four", got)
	}
}
