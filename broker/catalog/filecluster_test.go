package catalog

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleCluster is a state with something of everything.
func sampleCluster(t *testing.T) *State {
	t.Helper()
	c := found(t, 3)
	q := c.create("orders", Quorum, in(1), in(2))
	m := c.create("ticks", Memory, on(2))
	c.create("events", Durable, on(1))
	gone := c.create("gone", Durable, on(1))
	c.do(DeleteStream{Name: name("gone"), Incarnation: gone.Incarnation, Ends: []uint64{41}})
	c.do(BeginMove{MoveShard{Name: name("ticks"), Incarnation: m.Incarnation, Epoch: 1, To: "n1"}})
	c.do(SealStream{Name: name("orders"), Incarnation: q.Incarnation})
	c.do(ReportEnds{Name: name("orders"), Incarnation: q.Incarnation, Ends: []ShardEnd{{1, 7}}})
	c.do(SetTargets{Targets: []GroupTarget{{ID: 0, Nodes: []string{"n1", "n2"}}, {ID: 1, Nodes: []string{"n2", "n1"}}}})
	c.do(ReportGroup{ID: 1, Term: 3, Leader: "n2", Members: []Member{{"n2", "i2", true}, {"n1", "i1", false}}})
	c.do(RemoveBroker{Node: "n3"})
	c.do(SetDraining{Node: "n2", Draining: true})
	return c.state
}

func TestGoldenCluster(t *testing.T) {
	const golden = "testdata/catalog-v2.json"
	st := sampleCluster(t)
	got := encoded(t, st)
	if *update {
		writeFile(t, golden, got)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("what is written has changed (-want +got):\n%s", diff)
	}
	read, err := DecodeState(golden, want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(st, read, equalStates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// B58: a snapshot that is damaged is refused, whatever is damaged in it; nobody
// takes it for a cluster with fewer streams.
func TestDamagedSnapshot(t *testing.T) {
	intact := encoded(t, sampleCluster(t))
	refused := func(what string, at int, data []byte) {
		t.Helper()
		_, err := DecodeState("snapshot", data)
		_, corrupt := errors.AsType[*CorruptError](err)
		if _, version := errors.AsType[*VersionError](err); !corrupt && !version {
			t.Fatalf("%s %d: got %v", what, at, err)
		}
	}
	for n := range len(intact) - 1 { // without its last newline it is whole
		refused("cut to", n, intact[:n])
	}
	for i := range len(intact) - 1 {
		for _, bit := range []byte{0x01, 0x10, 0x80} {
			damaged := bytes.Clone(intact)
			damaged[i] ^= bit
			refused("changed", i, damaged)
		}
	}
}

func TestClustersThatMakeNoSense(t *testing.T) {
	intact := string(encoded(t, sampleCluster(t)))
	body := intact[strings.Index(intact, `"body":`)+len(`"body":`) : len(intact)-2]
	if _, err := decode("c", envelope(2, body)); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"version 1":        {`"cluster":{`, `"other":{`},
		"no groups":        {`"groups":[`, `"groups":[],"was":[`},
		"group twice":      {`"id":1,`, `"id":2,`},
		"no such group":    {`"id":2,`, `"id":9,`},
		"settings":         {`"replicas":3`, `"replicas":99`},
		"broker twice":     {`"node_id":"n2"`, `"node_id":"n1"`},
		"broker's name":    {`"node_id":"n2"`, `"node_id":"../n2"`},
		"nowhere":          {`"places":[{"owner":"n2"`, `"places":[{"was":"n2"`},
		"group and owner":  {`"places":[{"owner":"n2"`, `"places":[{"group":1,"owner":"n2"`},
		"group of a group": {`{"group":2}`, `{"group":3}`},
		"too few places":   {`{"group":1},{"group":2}`, `{"group":1}`},
		"end of no shard":  {`"ends":[{"shard":1`, `"ends":[{"shard":2`},
	} {
		changed := strings.Replace(body, change[0], change[1], 1)
		if changed == body {
			t.Fatalf("%s: %q is not there\n%s", what, change[0], body)
		}
		if _, ok := errors.AsType[*CorruptError](errOf(decode("c", envelope(2, changed)))); !ok {
			t.Errorf("%s: accepted", what)
		}
	}
	if _, ok := errors.AsType[*CorruptError](errOf(decode("c", envelope(1, body)))); !ok {
		t.Error("a cluster in version 1: accepted")
	}
}

func errOf(_ *State, err error) error { return err }
