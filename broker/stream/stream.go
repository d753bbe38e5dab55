package stream

import "felix.dev/felix/broker/wire"

// Durability says what acknowledged means for a stream.
type Durability uint8

const (
	// Memory streams live in the tail ring only.
	Memory Durability = iota + 1
	// Durable streams acknowledge what is on this broker's disk.
	Durable
)

// String is the name used in the catalog and on the command line.
func (d Durability) String() string {
	switch d {
	case Memory:
		return "Memory"
	case Durable:
		return "Durable"
	}
	return "Unknown"
}

// Stream is a name and its shards.
type Stream struct {
	Name        Name
	Incarnation string // differs for each stream ever created under the name
	Durability  Durability
	Routing     wire.Routing
	shards      []*Shard
}

// NewStream puts shards under a name; their order is their number.
func NewStream(n Name, incarnation string, d Durability, r wire.Routing, shards []*Shard) *Stream {
	return &Stream{Name: n, Incarnation: incarnation, Durability: d, Routing: r, shards: shards}
}

// Shards are all shards in order. The caller must not change the slice.
func (s *Stream) Shards() []*Shard { return s.shards }

// Shard is the shard of that number.
func (s *Stream) Shard(i uint32) (*Shard, bool) {
	if int64(i) >= int64(len(s.shards)) {
		return nil, false
	}
	return s.shards[i], true
}
