package catalog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReserve(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	e := create(t, c, memory("m", 2))
	if diff := cmp.Diff(e.Reserved, []uint64{100, 100}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for _, step := range []struct {
		upTo, want uint64
		writes     bool
	}{
		{1, 100, false},
		{100, 100, false},
		{101, 201, true},
		{150, 201, false},
		{5000, 5100, true},
		{0, 5100, false},
	} {
		before := c.current.Load()
		mark, err := c.Reserve(name("m"), 1, step.upTo)
		if err != nil || mark != step.want {
			t.Errorf("up to %d: got %d, %v, want %d", step.upTo, mark, err, step.want)
		}
		if wrote := c.current.Load() != before; wrote != step.writes {
			t.Errorf("up to %d: wrote %v", step.upTo, wrote)
		}
	}
	// B93: after a crash no offset is used again.
	again, err := open(t, cfg).Get(name("m"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(again.StartOffsets(), []uint64{100, 5100}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestReserveSharesAWrite(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	for i := range 50 {
		create(t, c, memory(fmt.Sprint(i), 2))
	}
	create(t, c, spec("durable"))
	c = open(t, cfg) // every shard is at its mark now
	writes := 0
	for i := range 50 {
		for shard := range uint32(2) {
			before := c.current.Load()
			mark, err := c.Reserve(name(fmt.Sprint(i)), shard, 101)
			if err != nil || mark < 101 {
				t.Fatalf("got %d, %v", mark, err)
			}
			if c.current.Load() != before {
				writes++
			}
		}
	}
	if writes != 1 {
		t.Errorf("got %d writes, want 1", writes)
	}
	same(t, open(t, cfg), c)
}

func TestReserveRefuses(t *testing.T) {
	c := open(t, testConfig(t))
	create(t, c, spec("d"))
	create(t, c, memory("m", 1))
	var invalid *InvalidError
	if _, err := c.Reserve(name("d"), 0, 1); !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Reserve(name("m"), 1, 1); !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Reserve(name("x"), 0, 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestRecreatedMemoryStream(t *testing.T) {
	c := open(t, testConfig(t))
	create(t, c, memory("m", 1))
	if _, err := c.Reserve(name("m"), 0, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(name("m"), []uint64{950}); err != nil {
		t.Fatal(err)
	}
	e := create(t, c, memory("m", 1))
	if e.FirstOffsets[0] != 951 || e.Reserved[0] != 1051 {
		t.Errorf("got first %v, reserved %v", e.FirstOffsets, e.Reserved)
	}
}
