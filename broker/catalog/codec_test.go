package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// everyCommand is one of each, with something in every field.
func everyCommand() []Command {
	shards, tail := uint32(3), int64(1<<20)
	move := MoveShard{Name: name("s"), Incarnation: incarnation(1), Shard: 2, Epoch: 3, To: "n2"}
	place := ShardPlace{Group: 1, Owner: "n1", Instance: "i1", Epoch: 1, Moving: "n2"}
	entry := Entry{
		Spec: spec("s").Normalized(), Incarnation: incarnation(1), CreatedAt: epoch, RequestID: "r",
		Places: []ShardPlace{place}, Deleting: true, Ends: []ShardEnd{{0, 1}}, floors: []uint64{4}, floor: 5,
	}
	full := StreamSpec{
		Name: name("s"), Shards: 3, Durability: Durable, Routing: 1,
		Retention: Retention{MaxBytes: 1 << 30, MaxAge: time.Hour}, Queue: Queue{Entries: 8, Bytes: 64 << 10, OnFull: CatchUp},
		TailBytes: 1 << 20, Fsync: Fsync{Mode: FsyncInterval, Every: time.Second},
	}
	return []Command{
		FoundCluster{Cluster: "c1", Settings: Settings{8, 3, 10, 20, 30}, Founder: member(1), Importing: true},
		ImportStreams{Entries: []Entry{*entry.withShards(1)}, Graves: []grave{{name("g"), []uint64{1, 2}, 3}}, Floor: 9},
		FinishImport{},
		SetSettings{Settings: Settings{Replicas: 5}},
		CreateStream{Spec: full, Incarnation: incarnation(1), RequestID: "r", Places: []ShardPlace{place}},
		UpdateStream{Name: name("s"), Incarnation: incarnation(1), Places: []ShardPlace{place}, Change: Change{
			Shards: &shards, TailBytes: &tail, Retention: &Retention{MaxBytes: 5, MaxAge: time.Hour},
			Queue: &Queue{Entries: 8, Bytes: 9, OnFull: Block}, Fsync: &Fsync{Mode: FsyncInterval, Every: time.Second},
		}},
		SealStream{Name: name("s"), Incarnation: incarnation(1)},
		ReportEnds{Name: name("s"), Incarnation: incarnation(1), Ends: []ShardEnd{{0, 1}, {1, 1 << 63}}},
		DeleteStream{Name: name("s"), Incarnation: incarnation(1), Ends: []uint64{1, 2}},
		ReserveOffsets{Marks: []Mark{{Name: name("s"), Incarnation: incarnation(1), Shard: 1, Epoch: 2, UpTo: 3}}},
		RegisterBroker{Broker: member(2), Replaces: "i9"},
		SetDraining{Node: "n1", Draining: true},
		RemoveBroker{Node: "n1", Instance: "i1", Force: true},
		SetTargets{Targets: []GroupTarget{{ID: 1, Nodes: []string{"n1", "n2"}}}},
		ReportGroup{ID: 1, Term: 2, Leader: "n1", Members: []Member{{"n1", "i1", true}}},
		BeginMove{move},
		FinishMove{move},
		CancelMove{move},
	}
}

func TestCommandsGolden(t *testing.T) {
	const golden = "testdata/commands-v1.jsonl"
	var got []byte
	seen := map[Kind]bool{}
	for _, cmd := range everyCommand() {
		data, err := EncodeCommand(cmd, epoch)
		if err != nil {
			t.Fatal(err)
		}
		got = append(append(got, data...), '\n')
		seen[cmd.kind()] = true
		back, at, err := DecodeCommand(data)
		if err != nil || !at.Equal(epoch) {
			t.Fatalf("%T: %v, at %v", cmd, err, at)
		}
		if diff := cmp.Diff(cmd, back, equalStates); diff != "" {
			t.Errorf("%T (-want +got):\n%s", cmd, diff)
		}
	}
	if len(seen) != len(commands) {
		t.Errorf("%d of %d commands are in the golden file", len(seen), len(commands))
	}
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
}

// Whatever a command is, it is applied by its value: a pointer would be another type.
func TestCommandsAreValues(t *testing.T) {
	for _, cmd := range everyCommand() {
		if reflect.TypeOf(cmd).Kind() != reflect.Struct {
			t.Errorf("%T", cmd)
		}
	}
}

// An old broker in a newer cluster must notice, and must not go on.
func TestCommandsOfALaterRelease(t *testing.T) {
	st := found(t, 1).state
	before := encoded(t, st)
	refuse := func(what string, data []byte, later bool) {
		t.Helper()
		next, r, err := st.ApplyEncoded(st.Index()+1, data)
		if next != st || r.Changed || !bytes.Equal(encoded(t, next), before) {
			t.Errorf("%s: the state has changed", what)
		}
		_, unknown := errors.AsType[*UnknownCommandError](err)
		_, damaged := errors.AsType[*DamagedCommandError](err)
		if unknown != later || damaged == later {
			t.Errorf("%s: got %v", what, err)
		}
		if err == nil || !strings.Contains(err.Error(), "cannot follow") || !strings.Contains(err.Error(), fmt.Sprintf("entry %d", st.Index()+1)) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	refuse("kind", []byte(`{"version":1,"kind":"fly","at":"2026-11-30T12:00:00Z","command":{}}`), true)
	refuse("version", []byte(`{"version":2,"kind":"set_draining","at":"2026-11-30T12:00:00Z","command":{"node":"n1","draining":true}}`), true)
	refuse("field", []byte(`{"version":1,"kind":"set_draining","at":"2026-11-30T12:00:00Z","command":{"node":"n1","draining":true,"softly":true}}`), true)
	refuse("field of a setting", []byte(`{"version":1,"kind":"create_stream","at":"2026-11-30T12:00:00Z","command":{"spec":{"tenant":"t","stream":"s","shards":1,"color":"red"}}}`), true)
	refuse("type", []byte(`{"version":1,"kind":"set_draining","at":"2026-11-30T12:00:00Z","command":{"node":7}}`), true)
	refuse("empty", nil, false)
	refuse("zeros", make([]byte, 64), false)
	refuse("no command", []byte(`{"version":1,"kind":"set_draining"}`), false)
	refuse("no version", []byte(`{"kind":"set_draining","command":{}}`), false)
	refuse("two", []byte(`{} {}`), false)
}

func TestCommandsAreBounded(t *testing.T) {
	_, err := EncodeCommand(SetDraining{Node: strings.Repeat("x", MaxCommandBytes)}, epoch)
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, cmd := range everyCommand() {
		data, err := EncodeCommand(cmd, epoch)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		st := found(t, 2).state
		next, _, err := st.ApplyEncoded(st.Index()+1, data)
		if err != nil {
			return
		}
		encoded(t, next)
	})
}
