package catalog

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// counter is a source of incarnations that can be told apart.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	c.n++
	for i := range p {
		p[i] = c.n
	}
	return len(p), nil
}

func testConfig(t *testing.T) Config {
	t.Helper()
	return Config{
		Path: filepath.Join(t.TempDir(), "catalog.json"),
		Now:  func() time.Time { return epoch }, Random: &counter{}, ReserveBlock: 100,
	}
}

func open(t *testing.T, cfg Config) *Catalog {
	t.Helper()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func name(s string) Name { return Name{Tenant: "t1", Namespace: "default", Stream: s} }

func spec(s string) StreamSpec { return StreamSpec{Name: name(s)} }

func memory(s string, shards uint32) StreamSpec {
	return StreamSpec{Name: name(s), Durability: Memory, Shards: shards}
}

func create(t *testing.T, c *Catalog, s StreamSpec) Entry {
	t.Helper()
	e, created, err := c.Create(s, "")
	if err != nil || !created {
		t.Fatalf("create %s: %v, %v", s.Name, created, err)
	}
	return e
}

// same compares what two catalogs hold.
func same(t *testing.T, got, want *Catalog) {
	t.Helper()
	opts := cmp.Options{cmp.AllowUnexported(State{}, Entry{}, grave{}), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(got.current.Load(), want.current.Load(), opts); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestOpenAgain(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	full := StreamSpec{
		Name: name("full"), Shards: 3, Durability: Durable, Routing: 1,
		Retention: Retention{MaxBytes: 1 << 30, MaxAge: time.Hour},
		Queue:     Queue{Entries: 8, Bytes: 64 << 10, OnFull: CatchUp},
		TailBytes: 1 << 20, Fsync: Fsync{Mode: FsyncInterval, Every: time.Second},
	}
	if _, _, err := c.Create(full, "request <1> & more"); err != nil {
		t.Fatal(err)
	}
	create(t, c, memory("mem", 2))
	create(t, c, spec("gone"))
	if _, err := c.Delete(name("gone"), []uint64{7}); err != nil {
		t.Fatal(err)
	}
	again := open(t, cfg)
	same(t, again, c)
	got, err := again.Get(name("full"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got.Spec, full); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestOpenMissing(t *testing.T) {
	cfg := testConfig(t)
	if got := open(t, cfg).List(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	cfg.MustExist = true
	if _, err := Open(cfg); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}

func TestListIsOrdered(t *testing.T) {
	c := open(t, testConfig(t))
	for _, n := range []Name{{"t2", "a", "a"}, {"t1", "b", "a"}, {"t1", "a.b", "a"}, {"t1", "a", "b"}, {"t1", "a", "a"}} {
		create(t, c, StreamSpec{Name: n})
	}
	var got []string
	for _, e := range c.List() {
		got = append(got, e.Spec.Name.String())
	}
	if diff := cmp.Diff(got, []string{"t1/a/a", "t1/a/b", "t1/a.b/a", "t1/b/a", "t2/a/a"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// Readers see whole states, and a writer never holds them up.
func TestReadersAndWriters(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	create(t, c, memory("stays", 1))
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.Get(name("stays")); err != nil {
					t.Errorf("a stream is gone: %v", err)
					return
				}
				for _, e := range c.List() {
					if len(e.FirstOffsets) != int(e.Spec.Shards) {
						t.Error("half an entry")
					}
				}
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 10 {
				s := fmt.Sprintf("s%d", w)
				if _, _, err := c.Create(spec(s), ""); err != nil {
					t.Error(err)
				}
				shards := uint32(2)
				if _, err := c.Update(name(s), Change{Shards: &shards}); err != nil {
					t.Error(err)
				}
				if _, err := c.Reserve(name("stays"), 0, uint64(1000*w+100*i)); err != nil {
					t.Error(err)
				}
				if _, err := c.Delete(name(s), []uint64{uint64(i), 0}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	same(t, open(t, cfg), c)
}

func TestInMemory(t *testing.T) {
	now := epoch
	cfg := Config{InMemory: true, Now: func() time.Time { return now }}
	first := create(t, open(t, cfg), memory("m", 1))
	now = now.Add(time.Millisecond)
	second := create(t, open(t, cfg), memory("m", 1))
	// B17: what was handed out before the restart is too old after it.
	if second.FirstOffsets[0] <= first.FirstOffsets[0]+100_000 {
		t.Errorf("got %d after %d", second.FirstOffsets[0], first.FirstOffsets[0])
	}
	if second.Incarnation == first.Incarnation {
		t.Error("same incarnation")
	}
}

func TestConfigValidate(t *testing.T) {
	for _, bad := range []Config{{}, {Path: "x", InMemory: true}, {Path: "x", MaxStreams: -1}, {Path: "x", MaxGraves: -1}} {
		if _, err := Open(bad); err == nil {
			t.Errorf("%+v accepted", bad)
		}
	}
}
