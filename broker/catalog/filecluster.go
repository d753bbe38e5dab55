package catalog

import (
	"fmt"
	"slices"
)

// fileCluster is what version 2 of the format adds.
type fileCluster struct {
	ID        string       `json:"id,omitempty"` // left out: not founded yet
	Index     uint64       `json:"index"`
	Version   uint64       `json:"version"`
	Importing bool         `json:"importing,omitempty"`
	Settings  Settings     `json:"settings"`
	Brokers   []Broker     `json:"brokers"`           // ordered by node id
	Removed   []instanceID `json:"removed,omitempty"` // oldest first
	Groups    []Group      `json:"groups"`            // ordered by id
	Buried    []string     `json:"buried,omitempty"`  // oldest first
}

// clusterToFile is nil for a single broker.
func clusterToFile(s *State) *fileCluster {
	if s.cluster == "" && s.index == 0 {
		return nil
	}
	return &fileCluster{
		ID: s.cluster, Index: s.index, Version: s.version, Importing: s.importing, Settings: s.settings,
		Brokers: s.Brokers(), Removed: s.removed, Groups: s.Groups(), Buried: s.buried,
	}
}

// clusterFromFile fills in what a cluster has, and refuses what contradicts itself.
func clusterFromFile(f *fileCluster, s *State) error {
	if f == nil {
		f = &fileCluster{}
	}
	if err := f.Settings.Validate(); err != nil {
		return err
	}
	s.cluster, s.index, s.version, s.importing, s.settings = f.ID, f.Index, f.Version, f.Importing, f.Settings
	s.removed, s.buried = f.Removed, f.Buried
	for _, b := range f.Brokers {
		if err := b.Validate(); err != nil {
			return fmt.Errorf("broker %q: %w", b.NodeID, err)
		}
		if s.brokers[b.NodeID] != nil {
			return fmt.Errorf("broker %q is there twice", b.NodeID)
		}
		if s.brokers == nil {
			s.brokers = make(map[string]*Broker)
		}
		s.brokers[b.NodeID] = &b
	}
	for _, g := range f.Groups {
		if g.ID > f.Settings.Groups || s.groups[g.ID] != nil {
			return fmt.Errorf("group %d is there twice, or is not one of %d", g.ID, f.Settings.Groups)
		}
		if s.groups == nil {
			s.groups = make(map[uint32]*Group)
		}
		s.groups[g.ID] = &g
	}
	if f.ID != "" && (len(s.brokers) == 0 || len(s.groups) != int(f.Settings.Groups)+1) {
		return fmt.Errorf("cluster of %d brokers and %d groups", len(s.brokers), len(s.groups))
	}
	for _, e := range s.entries {
		if err := s.checkPlaces(e); err != nil {
			return fmt.Errorf("stream %s: %w", e.Spec.Name, err)
		}
	}
	return nil
}

// checkPlaces refuses an entry whose shards are nowhere, or that a single broker
// cannot have.
func (s *State) checkPlaces(e *Entry) error {
	if s.cluster == "" {
		if e.Spec.Durability == Quorum || e.Places != nil || e.Deleting || e.Ends != nil {
			return fmt.Errorf("it is of a cluster, and there is none (durability %s, %d places)", e.Spec.Durability, len(e.Places))
		}
		return nil
	}
	wrong := slices.ContainsFunc(e.Places, func(p ShardPlace) bool {
		return (p.Group != 0) != (e.Spec.Durability == Quorum) || p.Group > s.settings.Groups || (p.Group == 0) != (p.Owner != "")
	})
	if wrong || len(e.Places) != int(e.Spec.Shards) {
		return fmt.Errorf("%d places of %d shards, durability %s: %+v", len(e.Places), e.Spec.Shards, e.Spec.Durability, e.Places)
	}
	return nil
}
