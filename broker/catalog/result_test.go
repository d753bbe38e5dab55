package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// travel is the result at whoever proposed the command.
func travel(t *testing.T, r Result) Result {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out Result
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return out
}

func TestResultTravels(t *testing.T) {
	c := found(t, 2)
	e := c.create("s", Quorum, in(1), in(2))
	got := travel(t, Result{Changed: true, Created: true, Entry: &e})
	if diff := cmp.Diff(Result{Changed: true, Created: true, Entry: &e}, got, cmp.AllowUnexported(Entry{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for reason, is := range refusals {
		err := fmt.Errorf("catalog: do something: %w", is)
		got := travel(t, Result{Err: err})
		if !errors.Is(got.Err, is) || got.Err.Error() != err.Error() {
			t.Errorf("%s: got %v", reason, got.Err)
		}
		for other, not := range refusals {
			if other != reason && errors.Is(got.Err, not) {
				t.Errorf("%s is also %s", reason, other)
			}
		}
	}
}

func TestTypedRefusalsTravel(t *testing.T) {
	c := found(t, 1)
	c.create("s", Durable, on(1))
	for _, cmd := range []Command{
		RemoveBroker{Node: "n1"},
		RegisterBroker{Broker: Broker{NodeID: "?"}},
		SetDraining{Node: "n9"},
		CreateStream{Spec: StreamSpec{Name: name("x"), Shards: 999}},
		SetSettings{Settings: Settings{Groups: 5}},
	} {
		want := c.try(cmd).Err
		got := travel(t, Result{Err: want}).Err
		if got == nil || got.Error() != want.Error() {
			t.Errorf("%T: got %v, want %v", cmd, got, want)
		}
		if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) && fmt.Sprintf("%T", got) != "*catalog.refused" {
			t.Errorf("%T: got a %T, want a %T", cmd, got, want)
		}
	}
	if err := travel(t, c.try(RemoveBroker{Node: "n1"})).Err; !errors.As(err, new(*HoldsError)) {
		t.Errorf("got %v", err)
	}
	var r Result
	if err := json.Unmarshal([]byte(`{"entry":{"shards":0}}`), &r); err == nil {
		t.Error("an entry that is none was read")
	}
}
