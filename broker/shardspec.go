package broker

import (
	"encoding/json"
	"fmt"

	"felix.dev/felix/broker/catalog"
)

// shardSpec is what a group's entries carry about a shard, for this package alone to
// read.
type shardSpec struct {
	Spec catalog.StreamSpec `json:"spec"`
}

// shardSpecs are those of all streams, encoded once: they are looked at whenever
// anything in the catalog changes. One goroutine uses it.
type shardSpecs map[string]encodedSpec // by incarnation

type encodedSpec struct {
	spec    catalog.StreamSpec
	encoded []byte
}

// of encodes what a group is told about the shards of a stream.
func (s shardSpecs) of(e *catalog.Entry) ([]byte, error) {
	if have, ok := s[e.Incarnation]; ok && have.spec == e.Spec {
		return have.encoded, nil
	}
	b, err := json.Marshal(shardSpec{e.Spec})
	if err != nil {
		return nil, fmt.Errorf("broker: stream %s: %w", e.Spec.Name, err)
	}
	s[e.Incarnation] = encodedSpec{e.Spec, b}
	return b, nil
}

// keep forgets streams that are not among these.
func (s shardSpecs) keep(entries []catalog.Entry) {
	if len(s) <= len(entries) {
		return
	}
	there := make(map[string]bool, len(entries))
	for i := range entries {
		there[entries[i].Incarnation] = true
	}
	for incarnation := range s {
		if !there[incarnation] {
			delete(s, incarnation)
		}
	}
}
