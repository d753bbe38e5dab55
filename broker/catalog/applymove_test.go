package catalog

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMove(t *testing.T) {
	c := found(t, 3)
	e := c.create("s", Durable, on(1), on(1))
	place := func() ShardPlace {
		got, err := c.state.Get(name("s"))
		if err != nil {
			t.Fatal(err)
		}
		return got.Places[1]
	}
	to := func(i int, epoch uint64) MoveShard {
		return MoveShard{Name: name("s"), Incarnation: e.Incarnation, Shard: 1, Epoch: epoch, To: node(i)}
	}
	c.refused(FinishMove{to(2, 1)}, ErrStale)
	c.refused(BeginMove{to(2, 7)}, ErrStale)
	c.do(BeginMove{to(1, 1)}) // it is there
	c.do(BeginMove{to(2, 1)})
	if diff := cmp.Diff(ShardPlace{Owner: "n1", Instance: "i1", Epoch: 1, Moving: "n2"}, place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.refused(BeginMove{to(3, 1)}, ErrStale)
	c.refused(FinishMove{to(3, 1)}, ErrStale)
	c.refused(CancelMove{to(3, 1)}, ErrStale)
	encoded(t, c.state)
	c.do(CancelMove{to(2, 1)})
	if got := place(); got.Moving != "" || got.Owner != "n1" || got.Epoch != 2 {
		t.Errorf("got %+v", got)
	}
	c.do(CancelMove{to(2, 1)}) // done before
	c.refused(FinishMove{to(2, 1)}, ErrStale)
	c.do(BeginMove{to(2, 2)}) // a move of its own: what was left of the first does not count
	c.refused(FinishMove{to(2, 1)}, ErrStale)
	c.do(CancelMove{to(2, 2)})
	c.do(BeginMove{to(3, 3)})
	c.do(FinishMove{to(3, 3)})
	if diff := cmp.Diff(ShardPlace{Owner: "n3", Instance: "i3", Epoch: 4}, place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.refused(CancelMove{to(3, 3)}, ErrStale)
	c.refused(FinishMove{to(2, 1)}, ErrStale)
}

func TestMoveRefuses(t *testing.T) {
	c := found(t, 2)
	e, q := c.create("s", Durable, on(1)), c.create("q", Quorum, in(1))
	m := MoveShard{Name: name("s"), Incarnation: e.Incarnation, Epoch: 1, To: "n2"}
	far, other, unknown, group := m, m, m, m
	far.Shard, other.Incarnation, unknown.To = 1, incarnation(999), "n9"
	group.Name, group.Incarnation = name("q"), q.Incarnation
	var invalid *InvalidError
	for _, cmd := range []Command{BeginMove{far}, FinishMove{far}, CancelMove{far}, BeginMove{group}} {
		if r := c.try(cmd); !errors.As(r.Err, &invalid) {
			t.Errorf("%T: got %v", cmd, r.Err)
		}
	}
	c.refused(BeginMove{other}, ErrNotFound)
	c.refused(BeginMove{unknown}, ErrNoBroker)
	c.do(SetDraining{Node: "n2", Draining: true})
	c.refused(BeginMove{m}, ErrPlacement)
	c.do(SealStream{Name: name("s"), Incarnation: e.Incarnation})
	c.refused(BeginMove{m}, ErrDeleting)
}
