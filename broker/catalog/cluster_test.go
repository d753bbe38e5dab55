package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fellow is what a test and a property have in common.
type fellow interface {
	Helper()
	Fatalf(format string, args ...any)
}

// cluster is a state that commands are applied to.
type cluster struct {
	t     fellow
	state *State
}

func node(i int) string { return fmt.Sprintf("n%d", i) }

func member(i int) Broker {
	return Broker{
		NodeID: node(i), Instance: fmt.Sprintf("i%d", i), Peer: fmt.Sprintf("host-%d:9001", i),
		Client: fmt.Sprintf("host-%d:9000", i), Admin: fmt.Sprintf("host-%d:9002", i), Zone: "z", Version: "1.0",
	}
}

// found makes a cluster of n brokers with small bounds.
func found(t fellow, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, state: New()}
	c.do(FoundCluster{Cluster: "c1", Settings: Settings{Groups: 2, ReserveBlock: 100, MaxStreams: 20}, Founder: member(1)})
	for i := 2; i <= n; i++ {
		c.do(RegisterBroker{Broker: member(i)})
	}
	return c
}

// try applies a command in its encoded form.
func (c *cluster) try(cmd Command) Result {
	c.t.Helper()
	data, err := EncodeCommand(cmd, epoch)
	if err != nil {
		c.t.Fatalf("%T: %v", cmd, err)
	}
	next, r, err := c.state.ApplyEncoded(c.state.Index()+1, data)
	if err != nil {
		c.t.Fatalf("%T: %v", cmd, err)
	}
	if next.Index() != c.state.Index()+1 {
		c.t.Fatalf("%T: index %d after %d", cmd, next.Index(), c.state.Index())
	}
	if r.Changed != (next.Version() == next.Index()) || r.Err != nil && r.Changed {
		c.t.Fatalf("%T: %+v, version %d of %d", cmd, r, next.Version(), next.Index())
	}
	c.state = next
	return r
}

// do applies a command that has to succeed, twice: whoever did not get the answer
// asks again, and that is success without another change (B88).
func (c *cluster) do(cmd Command) Result {
	c.t.Helper()
	first := c.try(cmd)
	if first.Err != nil {
		c.t.Fatalf("%T: %v", cmd, first.Err)
	}
	if again := c.try(cmd); again.Err != nil || again.Changed || again.Created {
		c.t.Fatalf("%T asked again: %+v", cmd, again)
	}
	return first
}

// refused applies a command that has to be refused with the given error.
func (c *cluster) refused(cmd Command, want error) {
	c.t.Helper()
	r := c.try(cmd)
	if r.Err == nil || want != nil && !errors.Is(r.Err, want) {
		c.t.Fatalf("%T: got %v, want %v", cmd, r.Err, want)
	}
}

// made is the number of streams that tests have made: incarnations differ.
func incarnation(n int) string { return fmt.Sprintf("%032x", n) }

func (c *cluster) create(s string, durability Durability, places ...ShardPlace) Entry {
	c.t.Helper()
	return *c.do(CreateStream{
		Spec:        StreamSpec{Name: name(s), Durability: durability, Shards: uint32(len(places))},
		Incarnation: incarnation(int(c.state.Index() + 1)), RequestID: "r-" + s, Places: places,
	}).Entry
}

func on(i int) ShardPlace { return ShardPlace{Owner: node(i)} }

func in(group uint32) ShardPlace { return ShardPlace{Group: group} }

// equalStates compares everything that two states have.
var equalStates = cmp.Options{cmp.AllowUnexported(State{}, Entry{}, grave{}), cmpopts.EquateEmpty()}

// encoded is the state's form; the state must be as it is read again.
func encoded(t fellow, s *State) []byte {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	read, err := DecodeState("memory", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(s, read, equalStates); diff != "" {
		t.Fatalf("read again (-written +read):\n%s", diff)
	}
	return data
}

func TestFoundCluster(t *testing.T) {
	c := found(t, 3)
	if c.state.Cluster() != "c1" || c.state.Settings() != (Settings{Groups: 2, Replicas: 3, MaxStreams: 20, MaxGraves: 10_000, ReserveBlock: 100}) {
		t.Errorf("cluster %q, %+v", c.state.Cluster(), c.state.Settings())
	}
	if got := c.state.Groups(); len(got) != 3 || got[0].ID != MetadataGroup || !cmp.Equal(got[2].Target, []string{"n1"}) {
		t.Errorf("groups %+v", got)
	}
	brokers := c.state.Brokers()
	if len(brokers) != 3 || brokers[2].NodeID != "n3" || !brokers[2].Joined.Equal(epoch) {
		t.Errorf("brokers %+v", brokers)
	}
	c.refused(FoundCluster{Cluster: "c2", Founder: member(1)}, ErrOtherCluster)
	encoded(t, c.state)

	empty := &cluster{t: t, state: New()}
	for what, bad := range map[string]FoundCluster{
		"no id": {Founder: member(1)}, "no founder": {Cluster: "c"},
		"groups": {Cluster: "c", Founder: member(1), Settings: Settings{Groups: MaxGroups + 1}},
		"long":   {Cluster: strings.Repeat("x", 300), Founder: member(1)},
	} {
		if r := empty.try(bad); r.Err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	encoded(t, empty.state) // refusals are counted, and kept
}

func TestWithoutACluster(t *testing.T) {
	c := &cluster{t: t, state: New()}
	for _, cmd := range []Command{
		RegisterBroker{Broker: member(1)},
		SetDraining{Node: "n1"},
		RemoveBroker{Node: "n1"},
		SetTargets{},
		ReportGroup{},
		SealStream{},
		ReportEnds{},
		BeginMove{},
		FinishMove{},
		CancelMove{},
		SetSettings{},
		ImportStreams{},
		FinishImport{},
	} {
		c.refused(cmd, ErrNoCluster)
	}
}

func TestSetSettings(t *testing.T) {
	c := found(t, 1)
	c.do(SetSettings{Settings: Settings{Replicas: 5, MaxStreams: 7, MaxGraves: 8, ReserveBlock: 9}})
	if got := c.state.Settings(); got != (Settings{Groups: 2, Replicas: 5, MaxStreams: 7, MaxGraves: 8, ReserveBlock: 9}) {
		t.Errorf("got %+v", got)
	}
	c.refused(SetSettings{Settings: Settings{Groups: 3}}, nil)
	c.refused(SetSettings{Settings: Settings{Replicas: MaxReplicas + 1}}, nil)
}

// What was applied before is passed over: a log is replayed from before a snapshot.
func TestReplay(t *testing.T) {
	c := found(t, 1)
	data, err := EncodeCommand(SetDraining{Node: "n1", Draining: true}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	next, r, err := c.state.ApplyEncoded(c.state.Index(), data)
	if err != nil || r.Changed || next != c.state {
		t.Errorf("got %+v, %v", r, err)
	}
	if next, r := c.state.Apply(1, SetDraining{Node: "n1", Draining: true}, epoch); r.Changed || next != c.state {
		t.Errorf("got %+v", r)
	}
}

// The state of a cluster is no single broker's to change.
func TestOpenRefusesAClustersState(t *testing.T) {
	cfg := testConfig(t)
	writeFile(t, cfg.Path, encoded(t, found(t, 1).state))
	if _, err := Open(cfg); !errors.Is(err, ErrOfCluster) {
		t.Errorf("got %v", err)
	}
}

func TestSingleBrokerRefusesQuorum(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	_, _, err := c.Create(StreamSpec{Name: name("q"), Durability: Quorum}, "")
	var invalid *InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "needs a cluster") || !strings.Contains(err.Error(), "start the broker") {
		t.Errorf("got %v", err)
	}
	if len(c.List()) != 0 {
		t.Error("it is there")
	}
}

func TestStateDoesNotChange(t *testing.T) {
	c := found(t, 2)
	c.create("s", Durable, on(1), on(2))
	before := c.state
	data := encoded(t, before)
	c.do(SetDraining{Node: "n2", Draining: true})
	c.do(SealStream{Name: name("s"), Incarnation: before.List()[0].Incarnation})
	c.do(SetTargets{Targets: []GroupTarget{{ID: 1, Nodes: []string{"n2", "n1"}}}})
	if !bytes.Equal(encoded(t, before), data) {
		t.Error("an old state has changed")
	}
}
