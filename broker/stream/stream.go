package stream

import "felix.dev/felix/broker/wire"

// Durability says what acknowledged means for a stream.
type Durability uint8

const (
	// Memory streams live in the tail ring only.
	Memory Durability = iota + 1
	// Durable streams acknowledge what is on their broker's disk.
	Durable
	// Quorum streams acknowledge what is on the disks of a majority of their brokers.
	Quorum
)

// String is the name used in the catalog and on the command line.
func (d Durability) String() string {
	switch d {
	case Memory:
		return "Memory"
	case Durable:
		return "Durable"
	case Quorum:
		return "Quorum"
	}
	return "Unknown"
}

// Stream is a name and its shards, each in its place.
type Stream struct {
	Name        Name
	Incarnation string // differs for each stream ever created under the name
	Durability  Durability
	Routing     wire.Routing
	places      []Place
}

// NewStream puts the places of shards under a name; their order is their number.
func NewStream(n Name, incarnation string, d Durability, r wire.Routing, places []Place) *Stream {
	return &Stream{Name: n, Incarnation: incarnation, Durability: d, Routing: r, places: places}
}

// Places are those of all shards in order. The caller must not change the slice.
func (s *Stream) Places() []Place { return s.places }

// Place is that of the shard of that number.
func (s *Stream) Place(i uint32) (Place, bool) {
	if int64(i) >= int64(len(s.places)) {
		return nil, false
	}
	return s.places[i], true
}
