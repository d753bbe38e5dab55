package placement

import "felix.dev/felix/broker/catalog"

// Shards chooses the places of a new stream's shards, or of the shards from the
// given one on that are added to it: the group of a Quorum shard, the owner of any
// other.
func Shards(v View, spec catalog.StreamSpec, from uint32) []catalog.ShardPlace {
	spec = spec.Normalized()
	out := make([]catalog.ShardPlace, 0, spec.Shards-from)
	for shard := from; shard < spec.Shards; shard++ {
		out = append(out, catalog.ShardPlace{Group: GroupOf(spec.Name, shard, v.State.Settings().Groups)})
	}
	return out
}

// GroupOf is the quorum group of a shard, 1 to groups.
func GroupOf(catalog.Name, uint32, uint32) uint32 { return 1 }
