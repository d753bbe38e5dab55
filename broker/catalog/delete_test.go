package catalog

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// B17: read to 50, delete, create again: 50 and everything before it is older
// than the new stream.
func TestRecreatedStreamStartsBeyondOldCursors(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	old := create(t, c, StreamSpec{Name: name("s"), Shards: 2})
	if _, err := c.Delete(name("s"), []uint64{50, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(name("s")); !errors.Is(err, ErrNotFound) {
		t.Fatalf("still there: %v", err)
	}
	c = open(t, cfg) // a restart in between changes nothing
	e := create(t, c, StreamSpec{Name: name("s"), Shards: 2})
	if diff := cmp.Diff(e.FirstOffsets, []uint64{51, 1}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if e.Incarnation == old.Incarnation {
		t.Error("same incarnation")
	}
	// And again, with nothing published in between.
	if _, err := c.Delete(name("s"), []uint64{51, 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(create(t, c, StreamSpec{Name: name("s"), Shards: 2}).FirstOffsets, []uint64{52, 2}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// A shard that the new stream gets only later remembers as well.
func TestFloorsOutliveSmallerIncarnations(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	create(t, c, StreamSpec{Name: name("s"), Shards: 4})
	if _, err := c.Delete(name("s"), []uint64{10, 20, 30, 40}); err != nil {
		t.Fatal(err)
	}
	create(t, c, StreamSpec{Name: name("s"), Shards: 1})
	if _, err := c.Delete(name("s"), []uint64{5}); err != nil { // a caller that is wrong cannot sink a floor
		t.Fatal(err)
	}
	c = open(t, cfg)
	create(t, c, StreamSpec{Name: name("s"), Shards: 2})
	shards := uint32(5)
	e, err := c.Update(name("s"), Change{Shards: &shards})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.FirstOffsets, []uint64{11, 21, 31, 41, 0}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	same(t, open(t, cfg), c)
}

func TestGravesAreBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxGraves = 3
	c := open(t, cfg)
	for i := range uint64(10) {
		s := fmt.Sprint(i)
		create(t, c, spec(s))
		if _, err := c.Delete(name(s), []uint64{100 * i}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(c.current.Load().graves); got != 3 {
		t.Errorf("got %d graves", got)
	}
	c = open(t, cfg)
	// The forgotten ones share a floor beyond all of them, ...
	if e := create(t, c, spec("2")); e.FirstOffsets[0] <= 200 {
		t.Errorf("got %d, an old cursor would be misread", e.FirstOffsets[0])
	}
	// ... new names as well, also for shards that come later, ...
	e := create(t, c, spec("new"))
	shards := uint32(2)
	e2, err := c.Update(name("new"), Change{Shards: &shards})
	if err != nil {
		t.Fatal(err)
	}
	if e2.FirstOffsets[0] != e.FirstOffsets[0] || e2.FirstOffsets[1] != e.FirstOffsets[0] {
		t.Errorf("got %v after %v", e2.FirstOffsets, e.FirstOffsets)
	}
	// ... and the remembered ones have their own.
	if e := create(t, c, spec("8")); e.FirstOffsets[0] <= 800 {
		t.Errorf("got %d", e.FirstOffsets[0])
	}
}

func TestDeleteRefuses(t *testing.T) {
	c := open(t, testConfig(t))
	if _, err := c.Delete(name("x"), nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	create(t, c, spec("s"))
	var invalid *InvalidError
	for _, ends := range [][]uint64{nil, {1, 2}} {
		if _, err := c.Delete(name("s"), ends); !errors.As(err, &invalid) {
			t.Errorf("%v: got %v", ends, err)
		}
	}
}

func TestDeleteAtTheEndOfOffsets(t *testing.T) {
	c := open(t, testConfig(t))
	create(t, c, spec("s"))
	if _, err := c.Delete(name("s"), []uint64{math.MaxUint64}); err != nil {
		t.Fatal(err)
	}
	if e := create(t, c, spec("s")); e.FirstOffsets[0] != math.MaxUint64 {
		t.Errorf("got %d", e.FirstOffsets[0])
	}
}
