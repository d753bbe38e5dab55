package wire

import "fmt"

// Routing is how a key chooses its shard. A stream's routing never changes.
type Routing uint8

// Routings. Modulo is the zero value and the default.
const (
	RoutingModulo Routing = iota
	RoutingJump
)

func (r Routing) String() string {
	switch r {
	case RoutingModulo:
		return "modulo"
	case RoutingJump:
		return "jump_hash"
	}
	return fmt.Sprintf("routing_%d", uint8(r))
}

// MarshalText is the JSON form.
func (r Routing) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the JSON form. An unknown routing is refused: guessing
// would send keys to wrong shards.
func (r *Routing) UnmarshalText(b []byte) error {
	switch string(b) {
	case "modulo":
		*r = RoutingModulo
	case "jump_hash":
		*r = RoutingJump
	default:
		return fmt.Errorf("%w: unknown routing %q", ErrMalformed, b)
	}
	return nil
}

// ShardOf chooses the shard of a key. Without a key, or with one shard, it is
// 0. An empty key is a key.
func ShardOf(key []byte, keyed bool, shards uint32, routing Routing) uint32 {
	if !keyed || shards <= 1 {
		return 0
	}
	h := finalize(fnv1a64(key))
	if routing == RoutingJump {
		return jump(h, shards)
	}
	return uint32(h % uint64(shards))
}

func fnv1a64(key []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range key {
		h ^= uint64(b)
		h *= 0x100000001b3
	}
	return h
}

// finalize spreads the hash: the low bits of FNV alone are poor.
func finalize(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	h ^= h >> 31
	return h
}

// jump is the jump consistent hash of Lamping and Veach.
func jump(k uint64, n uint32) uint32 {
	b, j := int64(-1), int64(0)
	for j < int64(n) {
		b = j
		k = k*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(1<<31) / float64((k>>33)+1)))
	}
	return uint32(b)
}
