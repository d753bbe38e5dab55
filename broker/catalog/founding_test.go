package catalog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const testPage = 1500

// many is a single broker's catalog that does not fit one page of the tests.
func many(t *testing.T) *Catalog {
	t.Helper()
	cfg := testConfig(t)
	cfg.Random, cfg.InMemory, cfg.Path, cfg.MaxGraves = nil, true, "", 2
	c := open(t, cfg)
	for i := range 4 {
		s := fmt.Sprintf("gone-%d", i)
		create(t, c, spec(s))
		if _, err := c.Delete(name(s), []uint64{uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		create(t, c, memory(fmt.Sprintf("m-%d", i), 4))
		create(t, c, spec(fmt.Sprintf("d-%d", i)))
	}
	return c
}

// A single broker grows into a cluster: all its streams are there, with the offsets
// that they had, and belong to it.
func TestFounding(t *testing.T) {
	single := many(t).State()
	all, err := founding(FoundCluster{Cluster: "c1", Settings: Settings{MaxGraves: 2}, Founder: member(1)}, single, testPage)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 {
		t.Fatalf("%d commands: that was to be more than a page", len(all))
	}
	c := &cluster{t: t, state: New()}
	for _, cmd := range all {
		if _, last := cmd.(FinishImport); last {
			if !c.state.Importing() {
				t.Error("done before the end")
			}
			c.refused(CreateStream{Spec: spec("early"), Incarnation: incarnation(1), Places: []ShardPlace{on(1)}}, ErrImporting)
			c.refused(RegisterBroker{Broker: member(2)}, ErrImporting)
		}
		c.do(cmd)
	}
	if c.state.Importing() || c.state.Streams() != single.Streams() {
		t.Errorf("%d of %d streams", c.state.Streams(), single.Streams())
	}
	for _, want := range single.List() {
		got, err := c.state.Get(want.Spec.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Entry{}), cmpopts.IgnoreFields(Entry{}, "Places")); diff != "" {
			t.Fatalf("(-single +cluster):\n%s", diff)
		}
		for _, p := range got.Places {
			if p != (ShardPlace{Owner: "n1", Instance: "i1", Epoch: 1}) {
				t.Fatalf("%s: %+v", want.Spec.Name, p)
			}
		}
	}
	if c.state.floor != single.floor || len(c.state.graves) != 2 {
		t.Errorf("floor %d, want %d; %d graves", c.state.floor, single.floor, len(c.state.graves))
	}
	encoded(t, c.state)
}

// The founder may fail anywhere, and starts again from the first command.
func TestFoundingIsResumed(t *testing.T) {
	single := many(t).State()
	all, err := founding(FoundCluster{Cluster: "c1", Founder: member(1)}, single, testPage)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for stop := range len(all) + 1 {
		c := &cluster{t: t, state: New()}
		for _, cmd := range append(append([]Command(nil), all[:stop]...), all...) {
			if r := c.try(cmd); r.Err != nil {
				t.Fatalf("stopped after %d: %T: %v", stop, cmd, r.Err)
			}
		}
		c.state.index, c.state.version = 0, 0 // they tell how often it was tried
		got := encoded(t, c.state)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("stopped after %d: another state", stop)
		}
	}
}

// However large a single broker's catalog is, every command can be proposed.
func TestFoundingPagesAreBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.Random, cfg.InMemory, cfg.Path = nil, true, ""
	c := open(t, cfg)
	for i := range 60 {
		create(t, c, memory(fmt.Sprintf("m-%d", i), 256))
	}
	all, err := Founding(FoundCluster{Cluster: "c1", Founder: member(1)}, c.State())
	if err != nil || len(all) < 4 {
		t.Fatalf("%d commands, %v", len(all), err)
	}
	for _, cmd := range all {
		if _, err := EncodeCommand(cmd, epoch); err != nil {
			t.Error(err)
		}
	}
}
