package catalog

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// aCommand draws something that may or may not be possible.
func aCommand(t *rapid.T, s *State) Command {
	one := func(label string, upTo int) int { return rapid.IntRange(1, upTo).Draw(t, label) }
	aNode := func() string { return node(one("node", 5)) }
	aName := func() Name { return name([]string{"a", "b", "c"}[one("name", 3)-1]) }
	place := func() ShardPlace {
		if rapid.Bool().Draw(t, "group") {
			return in(uint32(one("group", 3)))
		}
		return ShardPlace{Owner: aNode()}
	}
	n := aName()
	life := incarnation(one("incarnation", 6))
	if e := s.entries[n.String()]; e != nil && rapid.Bool().Draw(t, "living") {
		life = e.Incarnation
	}
	move := MoveShard{Name: n, Incarnation: life, Shard: uint32(one("shard", 3) - 1), Epoch: uint64(one("epoch", 4)), To: aNode()}
	switch one("command", 15) {
	case 1, 2, 3:
		places := make([]ShardPlace, one("places", 3))
		d := []Durability{Memory, Durable, Quorum}[one("durability", 3)-1]
		for i := range places {
			if places[i] = place(); d == Quorum {
				places[i] = in(uint32(one("group", 2)))
			}
		}
		return CreateStream{
			Spec: StreamSpec{Name: n, Durability: d, Shards: uint32(len(places))}, Incarnation: life,
			RequestID: []string{"", "r1", "r2"}[one("request", 3)-1], Places: places,
		}
	case 4:
		shards := uint32(one("shards", 4))
		return UpdateStream{Name: n, Change: Change{Shards: &shards}, Places: []ShardPlace{place()}}
	case 5:
		return SealStream{Name: n, Incarnation: life}
	case 6:
		var ends []ShardEnd
		for shard := range uint32(one("ends", 3)) {
			ends = append(ends, ShardEnd{shard, rapid.Uint64().Draw(t, "end")})
		}
		return ReportEnds{Name: n, Incarnation: life, Ends: ends}
	case 7:
		return DeleteStream{Name: n, Incarnation: life, Ends: make([]uint64, one("ends", 3))}
	case 8:
		return ReserveOffsets{Marks: []Mark{{n, life, move.Shard, move.Epoch, rapid.Uint64().Draw(t, "mark")}}}
	case 9:
		b := member(one("broker", 5))
		b.Instance += []string{"", "x"}[one("instance", 2)-1]
		return RegisterBroker{Broker: b, Replaces: []string{"", member(one("broker", 5)).Instance}[one("replaces", 2)-1]}
	case 10:
		return SetDraining{Node: aNode(), Draining: rapid.Bool().Draw(t, "draining")}
	case 11:
		return RemoveBroker{Node: aNode(), Instance: []string{"", member(one("broker", 5)).Instance}[one("instance", 2)-1], Force: rapid.Bool().Draw(t, "force")}
	case 12:
		return SetTargets{Targets: []GroupTarget{{ID: uint32(one("group", 3) - 1), Nodes: []string{aNode(), aNode()}}}}
	case 13:
		return ReportGroup{ID: uint32(one("group", 3) - 1), Term: uint64(one("term", 5)), Leader: aNode(), Members: []Member{{aNode(), "i1", true}}}
	case 14:
		return []Command{BeginMove{move}, FinishMove{move}, CancelMove{move}}[one("move", 3)-1]
	default:
		return SetSettings{Settings: Settings{Replicas: one("replicas", 5), MaxGraves: one("graves", 3)}}
	}
}

// All brokers come to the same state, whether they have applied everything or
// began with a snapshot; what was done may be asked again (B88); and no offset of a
// name is ever used twice (B17).
func TestMachineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := found(t, 3)
		other := c.state
		highest := map[string][]uint64{} // by name and shard: what may have been handed out
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			cmd := aCommand(t, c.state)
			data, err := EncodeCommand(cmd, epoch)
			if err != nil {
				t.Fatal(err)
			}
			before := c.state
			was := bytesOf(t, before)
			first := c.try(cmd)
			if !bytes.Equal(bytesOf(t, before), was) {
				t.Fatalf("%T has changed the state that it was applied to", cmd)
			}
			if rapid.Bool().Draw(t, "restart") {
				if other, err = DecodeState("memory", encoded(t, other)); err != nil {
					t.Fatal(err)
				}
			}
			next, r, err := other.ApplyEncoded(c.state.Index(), data)
			if err != nil || r.Changed != first.Changed || (r.Err == nil) != (first.Err == nil) {
				t.Fatalf("%T: %+v here, %+v there, %v", cmd, first, r, err)
			}
			other = next
			if !bytes.Equal(bytesOf(t, c.state), bytesOf(t, other)) {
				t.Fatalf("%T: the states differ", cmd)
			}
			if first.Err == nil {
				// Asked again at once: nothing has happened in between.
				if again, r := c.state.Apply(c.state.Index()+1, cmd, epoch); r.Err != nil || r.Changed || again.Version() != c.state.Version() {
					t.Fatalf("%T asked again: %+v", cmd, r)
				}
			}
			if create, ok := cmd.(CreateStream); ok && first.Created {
				for i, got := range first.Entry.FirstOffsets {
					if seen := highest[create.Spec.Name.String()]; i < len(seen) && seen[i] >= got && got != ^uint64(0) {
						t.Fatalf("shard %d starts at %d, and %d was used", i, got, seen[i])
					}
				}
			}
			if first.Err == nil && first.Entry != nil && first.Changed {
				noteOffsets(highest, first.Entry, c.state)
			}
		}
	})
}

func bytesOf(t *rapid.T, s *State) []byte {
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// noteOffsets keeps the ends of what was buried.
func noteOffsets(highest map[string][]uint64, e *Entry, s *State) {
	if s.entries[e.Spec.Name.String()] != nil {
		return
	}
	key := e.Spec.Name.String()
	seen := highest[key]
	for len(seen) < len(e.FirstOffsets) {
		seen = append(seen, 0)
	}
	for i, first := range e.FirstOffsets {
		seen[i] = max(seen[i], max(first, 1)-1) // nothing at first, unless an end says so
	}
	for _, end := range e.Ends {
		seen[end.Shard] = max(seen[end.Shard], end.End)
	}
	highest[key] = seen
}
