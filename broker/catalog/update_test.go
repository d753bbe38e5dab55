package catalog

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUpdate(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	create(t, c, spec("s"))
	shards, tail := uint32(3), int64(1<<20)
	ch := Change{
		Shards: &shards, TailBytes: &tail,
		Retention: &Retention{MaxBytes: 5}, Queue: &Queue{Entries: 8, OnFull: Block},
		Fsync: &Fsync{Mode: FsyncInterval, Every: time.Second},
	}
	got, err := c.Update(name("s"), ch)
	if err != nil {
		t.Fatal(err)
	}
	want := StreamSpec{
		Name: name("s"), Shards: 3, Durability: Durable, TailBytes: 1 << 20,
		Retention: Retention{MaxBytes: 5}, Queue: Queue{Entries: 8, OnFull: Block},
		Fsync: Fsync{Mode: FsyncInterval, Every: time.Second},
	}
	if diff := cmp.Diff(got.Spec, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(got.FirstOffsets, []uint64{0, 0, 0}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	same(t, open(t, cfg), c)

	before := c.current.Load()
	if _, err := c.Update(name("s"), ch); err != nil {
		t.Fatal(err)
	}
	if c.current.Load() != before {
		t.Error("wrote though nothing changed")
	}
}

func TestUpdateRefuses(t *testing.T) {
	c := open(t, testConfig(t))
	create(t, c, StreamSpec{Name: name("s"), Shards: 2})
	one, many, tail := uint32(1), uint32(1000), int64(1)
	var invalid *InvalidError
	for what, ch := range map[string]Change{
		"fewer shards": {Shards: &one}, "too many": {Shards: &many}, "small tail": {TailBytes: &tail},
	} {
		if _, err := c.Update(name("s"), ch); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := c.Update(name("x"), Change{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestMoreShardsOfAMemoryStream(t *testing.T) {
	c := open(t, testConfig(t))
	create(t, c, memory("m", 1))
	if _, err := c.Reserve(name("m"), 0, 150); err != nil {
		t.Fatal(err)
	}
	shards := uint32(2)
	e, err := c.Update(name("m"), Change{Shards: &shards})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Reserved, []uint64{250, 100}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if mark, err := c.Reserve(name("m"), 1, 101); err != nil || mark != 201 {
		t.Errorf("got %d, %v", mark, err)
	}
}
