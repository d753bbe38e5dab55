package catalog

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCreateInACluster(t *testing.T) {
	c := found(t, 2)
	q := c.create("q", Quorum, in(1), in(2))
	if diff := cmp.Diff([]ShardPlace{{Group: 1}, {Group: 2}}, q.Places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m := c.create("m", Memory, on(2), on(1))
	if diff := cmp.Diff([]ShardPlace{{Owner: "n2", Instance: "i2", Epoch: 1}, {Owner: "n1", Instance: "i1", Epoch: 1}}, m.Places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{100, 100}, m.Reserved); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	encoded(t, c.state)
}

// B88: in a cluster, too, a retry is success, whatever places it has chosen anew.
func TestCreateAgainInACluster(t *testing.T) {
	c := found(t, 2)
	e := c.create("s", Durable, on(1))
	for what, cmd := range map[string]CreateStream{
		"same request":  {Spec: StreamSpec{Name: name("s"), Shards: 9}, RequestID: "r-s"},
		"same settings": {Spec: spec("s"), Places: []ShardPlace{on(2)}},
	} {
		r := c.do(cmd)
		if r.Created || r.Changed || r.Entry.Incarnation != e.Incarnation || r.Entry.Places[0].Owner != "n1" {
			t.Errorf("%s: got %+v", what, r)
		}
	}
	c.refused(CreateStream{Spec: StreamSpec{Name: name("s"), Shards: 9}, RequestID: "other"}, ErrExists)
}

func TestCreateInAClusterRefuses(t *testing.T) {
	c := found(t, 2)
	c.do(SetDraining{Node: "n2", Draining: true})
	at := func(d Durability, places ...ShardPlace) CreateStream {
		return CreateStream{Spec: StreamSpec{Name: name("x"), Durability: d}, Incarnation: incarnation(1), Places: places}
	}
	for what, cmd := range map[string]CreateStream{
		"nowhere": at(Durable), "too many places": at(Durable, on(1), on(1)), "draining": at(Durable, on(2)),
		"unknown": at(Memory, on(3)), "durable in a group": at(Durable, in(1)), "quorum on a broker": at(Quorum, on(1)),
		"in the metadata group": at(Quorum, in(0)), "no such group": at(Quorum, in(3)), "both": at(Quorum, ShardPlace{Group: 1, Owner: "n1"}),
	} {
		if r := c.try(cmd); !errors.Is(r.Err, ErrPlacement) {
			t.Errorf("%s: got %v", what, r.Err)
		}
	}
	var invalid *InvalidError
	cmd := at(Durable, on(1))
	cmd.Incarnation = "../../etc"
	if r := c.try(cmd); !errors.As(r.Err, &invalid) {
		t.Errorf("incarnation: got %v", r.Err)
	}
	cmd = at(Durable, on(1))
	cmd.RequestID = strings.Repeat("x", 300)
	if r := c.try(cmd); !errors.As(r.Err, &invalid) {
		t.Errorf("request id: got %v", r.Err)
	}
	c.do(SetDraining{Node: "n1", Draining: true}) // then there is nobody else
	c.do(at(Durable, on(2)))
}

func TestMoreShardsInACluster(t *testing.T) {
	c := found(t, 2)
	e := c.create("m", Memory, on(1))
	three := uint32(3)
	c.refused(UpdateStream{Name: name("m"), Change: Change{Shards: &three}}, ErrPlacement)
	c.refused(UpdateStream{Name: name("m"), Incarnation: incarnation(999), Change: Change{}}, ErrNotFound)
	got := c.do(UpdateStream{Name: name("m"), Incarnation: e.Incarnation, Change: Change{Shards: &three}, Places: []ShardPlace{on(2), on(1)}}).Entry
	if len(got.Places) != 3 || got.Places[0].Owner != "n1" || got.Places[1].Owner != "n2" || len(got.Reserved) != 3 || got.Reserved[2] != 100 {
		t.Errorf("got %+v", got)
	}
	encoded(t, c.state)
}

func TestReserveInACluster(t *testing.T) {
	c := found(t, 2)
	e := c.create("m", Memory, on(1))
	mark := Mark{Name: name("m"), Incarnation: e.Incarnation, Epoch: 1, UpTo: 500}
	other, moved, low, far := mark, mark, mark, mark
	other.Incarnation, moved.Epoch, low.UpTo, far.Shard = incarnation(999), 2, 7, 5
	for what, m := range map[string]Mark{"another incarnation": other, "moved": moved, "lower": low, "no such shard": far} {
		if r := c.do(ReserveOffsets{Marks: []Mark{m}}); r.Changed {
			t.Errorf("%s: reserved", what)
		}
	}
	c.do(ReserveOffsets{Marks: []Mark{other, mark}})
	if got, err := c.state.Get(name("m")); err != nil || got.StartOffsets()[0] != 500 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// B17: the next stream of the name starts beyond every end that was reported, and
// nothing is buried before all of them are known.
func TestSealAndBury(t *testing.T) {
	c := found(t, 2)
	e := c.create("s", Durable, on(1), on(2))
	other := uint32(9)
	seal := SealStream{Name: name("s"), Incarnation: e.Incarnation}
	ends := func(all ...ShardEnd) ReportEnds {
		return ReportEnds{Name: name("s"), Incarnation: e.Incarnation, Ends: all}
	}
	c.refused(ends(ShardEnd{0, 5}), nil)
	c.refused(SealStream{Name: name("s"), Incarnation: incarnation(999)}, ErrNotFound)
	if got := c.do(seal).Entry; !got.Deleting {
		t.Errorf("got %+v", got)
	}
	c.refused(CreateStream{Spec: spec("s"), Incarnation: incarnation(77), RequestID: "r-s", Places: []ShardPlace{on(1)}}, ErrDeleting)
	c.refused(UpdateStream{Name: name("s"), Change: Change{Shards: &other}}, ErrDeleting)
	c.refused(ends(ShardEnd{2, 5}), nil)
	c.do(ends(ShardEnd{1, 70}))
	c.do(ends(ShardEnd{1, 60})) // whoever saw less does not lower it
	encoded(t, c.state)
	if c.state.Buried(e.Incarnation) {
		t.Fatal("buried, and an end is missing")
	}
	if r := c.do(ends(ShardEnd{0, 50})); r.Entry == nil || r.Entry.Incarnation != e.Incarnation {
		t.Errorf("got %+v", r)
	}
	if _, err := c.state.Get(name("s")); !errors.Is(err, ErrNotFound) || !c.state.Buried(e.Incarnation) {
		t.Errorf("got %v", err)
	}
	// B88: who asks again is answered, also when the name lives again.
	c.do(seal)
	again := c.create("s", Durable, on(1), on(2))
	if diff := cmp.Diff([]uint64{51, 71}, again.FirstOffsets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.do(seal)
	c.do(ends(ShardEnd{0, 50}))
	c.do(DeleteStream{Name: name("s"), Incarnation: e.Incarnation})
	if _, err := c.state.Get(name("s")); err != nil {
		t.Errorf("the new stream is gone: %v", err)
	}
	encoded(t, c.state)
}

func TestSealEndsMoves(t *testing.T) {
	c := found(t, 2)
	e := c.create("s", Durable, on(1))
	c.do(BeginMove{MoveShard{Name: name("s"), Incarnation: e.Incarnation, Epoch: 1, To: "n2"}})
	got := c.do(SealStream{Name: name("s"), Incarnation: e.Incarnation}).Entry
	if got.Places[0].Moving != "" {
		t.Errorf("got %+v", got.Places)
	}
}

// Whoever knew an end will never come back.
func TestDeleteByForce(t *testing.T) {
	c := found(t, 2)
	e := c.create("s", Durable, on(1), on(2))
	c.do(SealStream{Name: name("s"), Incarnation: e.Incarnation})
	c.do(ReportEnds{Name: name("s"), Incarnation: e.Incarnation, Ends: []ShardEnd{{0, 50}}})
	c.do(DeleteStream{Name: name("s"), Incarnation: e.Incarnation, Ends: []uint64{0, math.MaxUint64 / 4}})
	again := c.create("s", Durable, on(1), on(1))
	if diff := cmp.Diff([]uint64{51, math.MaxUint64/4 + 1}, again.FirstOffsets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuriedIsBounded(t *testing.T) {
	c := found(t, 1)
	c.do(SetSettings{Settings: Settings{MaxGraves: 2}})
	for i := range maxBuried + 10 {
		next, r := c.state.Apply(c.state.Index()+1, CreateStream{Spec: spec("s"), Incarnation: incarnation(i), Places: []ShardPlace{on(1)}}, epoch)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		c.state, r = next.Apply(next.Index()+1, DeleteStream{Name: name("s"), Ends: []uint64{1}}, epoch)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if len(c.state.buried) != maxBuried || c.state.Buried(incarnation(9)) || !c.state.Buried(incarnation(10)) {
		t.Errorf("%d are remembered", len(c.state.buried))
	}
}
