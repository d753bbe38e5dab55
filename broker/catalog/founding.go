package catalog

import (
	"encoding/json"
	"fmt"
)

// importPage is about how many bytes of streams one command brings in.
const importPage = 256 << 10

// Founding are the commands that make a cluster of a single broker's catalog, in
// order. They may be proposed again from the start when it is not known how far
// they came.
func Founding(found FoundCluster, single *State) ([]Command, error) {
	return founding(found, single, importPage)
}

func founding(found FoundCluster, single *State, limit int) ([]Command, error) {
	found.Importing = true
	all := []Command{found}
	page, size := ImportStreams{Floor: single.floor}, 0
	add := func(v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("catalog: found cluster: %w", err)
		}
		if size += len(data); size > limit {
			all = append(all, page)
			page, size = ImportStreams{}, len(data)
		}
		return nil
	}
	for _, e := range single.List() {
		if err := add(e); err != nil {
			return nil, err
		}
		page.Entries = append(page.Entries, e)
	}
	for _, g := range single.graves {
		if err := add(g); err != nil {
			return nil, err
		}
		page.Graves = append(page.Graves, g)
	}
	return append(all, page, FinishImport{}), nil
}
