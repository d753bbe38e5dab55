package metrics

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func records(series map[string]*streamSeries) map[string]uint64 {
	out := make(map[string]uint64, len(series))
	for label, s := range series {
		out[label] = s.records
	}
	return out
}

func at(name string, n uint64) StreamState { return StreamState{Stream: name, Records: n, LogBytes: 1} }

func TestStreamBook(t *testing.T) {
	b := newStreamBook(2)
	for i, step := range []struct {
		name    string
		streams []StreamState
		want    map[string]uint64
	}{
		{"first come", []StreamState{at("a", 5), at("b", 7)}, map[string]uint64{"a": 5, "b": 7}},
		{"no place left", []StreamState{at("a", 6), at("b", 7), at("c", 3), at("d", 4)}, map[string]uint64{"a": 6, "b": 7, "(other)": 7}},
		{"the order does not matter", []StreamState{at("d", 5), at("c", 3), at("b", 7), at("a", 6)}, map[string]uint64{"a": 6, "b": 7, "(other)": 8}},
		{"a place becomes free: c moves in with what it gains", []StreamState{at("a", 6), at("c", 13), at("d", 5)}, map[string]uint64{"a": 6, "c": 10, "(other)": 8}},
		{"counters started again", []StreamState{at("a", 1), at("c", 13), at("d", 2)}, map[string]uint64{"a": 7, "c": 10, "(other)": 10}},
		{"the others are gone, their sum stays", []StreamState{at("a", 1), at("c", 13)}, map[string]uint64{"a": 7, "c": 10, "(other)": 10}},
		{"a name that comes back starts anew", []StreamState{at("a", 1), at("e", 1)}, map[string]uint64{"a": 7, "e": 1, "(other)": 10}},
	} {
		got := records(b.scrape(step.streams))
		if diff := cmp.Diff(got, step.want); diff != "" {
			t.Fatalf("step %d, %s (-got +want):\n%s", i, step.name, diff)
		}
	}
}

func TestStreamBookAddsUpTheOthers(t *testing.T) {
	b := newStreamBook(1)
	var streams []StreamState
	for i := range 500 {
		streams = append(streams, at(fmt.Sprint(i), 1))
	}
	got := b.scrape(streams)
	if len(got) != 2 || got[OtherStreams].logBytes != 499 {
		t.Errorf("got %d labels, %d bytes of others", len(got), got[OtherStreams].logBytes)
	}
	b.scrape(nil)
	if len(b.own) != 0 || len(b.last) != 0 {
		t.Error("streams that are gone are remembered")
	}
}

func TestStreamBookWithoutPlaces(t *testing.T) {
	got := newStreamBook(0).scrape([]StreamState{at("a", 1)})
	if diff := cmp.Diff(records(got), map[string]uint64{OtherStreams: 1}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
