package placement

import (
	"hash/fnv"

	"felix.dev/felix/broker/catalog"
)

// Shards chooses the places of a new stream's shards, or of the shards from the
// given one on that are added to it: the group of a Quorum shard, the owner of any
// other. In a state without brokers nothing can be chosen, and the result is nil.
func Shards(v View, spec catalog.StreamSpec, from uint32) []catalog.ShardPlace {
	spec = spec.Normalized()
	if spec.Shards <= from || spec.Shards > catalog.MaxShards {
		return nil // the catalog says what is wrong with that
	}
	out := make([]catalog.ShardPlace, 0, spec.Shards-from)
	if spec.Durability == catalog.Quorum {
		for shard := from; shard < spec.Shards; shard++ {
			out = append(out, catalog.ShardPlace{Group: GroupOf(spec.Name, shard, v.State.Settings().Groups)})
		}
		return out
	}
	b := brokersOf(v)
	nodes := b.up()
	if len(nodes) == 0 {
		nodes = b.nodes
	}
	if len(nodes) == 0 {
		return nil
	}
	load := ownerLoad(v.State)
	for shard := from; shard < spec.Shards; shard++ {
		owner := least(nodes, func(n string) int { return load[n] })
		load[owner]++
		out = append(out, catalog.ShardPlace{Owner: owner})
	}
	return out
}

// GroupOf is the quorum group of a shard, 1 to groups; 0 if there are none. The
// shards of one stream are in groups that follow each other, so that they share as
// few as possible.
func GroupOf(n catalog.Name, shard, groups uint32) uint32 {
	if groups == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(n.String())) // never fails
	x := h.Sum64()
	x ^= x >> 33 // the low bits of FNV alone are poor
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return uint32((x+uint64(shard))%uint64(groups)) + 1
}
