package catalog

import (
	"errors"
	"fmt"
	"slices"
)

func (FoundCluster) kind() Kind { return "found_cluster" }

func (c FoundCluster) apply(t *transition) error {
	switch {
	case t.old.cluster == c.Cluster && c.Cluster != "":
		return nil
	case t.old.cluster != "":
		return fmt.Errorf("catalog: found cluster %s: %w: %s", c.Cluster, ErrOtherCluster, t.old.cluster)
	case len(t.old.entries) != 0:
		return errors.New("catalog: found cluster: streams are imported, not kept")
	case c.Cluster == "" || len(c.Cluster) > maxText:
		return fmt.Errorf("catalog: found cluster: id %.40q: want 1 to %d bytes", c.Cluster, maxText)
	}
	if err := errors.Join(c.Settings.Validate(), c.Founder.Validate()); err != nil {
		return fmt.Errorf("catalog: found cluster: %w", err)
	}
	t.next.cluster, t.next.settings, t.next.importing = c.Cluster, c.Settings.withDefaults(), c.Importing
	b := c.Founder
	b.Draining, b.Joined = false, t.at
	t.setBroker(b)
	for id := range t.next.settings.Groups + 1 {
		t.setGroup(Group{ID: id, Target: []string{b.NodeID}})
	}
	return nil
}

func (ImportStreams) kind() Kind { return "import_streams" }

// apply adds what is not there yet: every shard belongs to the founder, the only
// broker that there was when its streams were made.
func (c ImportStreams) apply(t *transition) error {
	if !t.old.importing {
		return nil // a page that is proposed again, later than the end
	}
	if len(t.old.brokers) != 1 {
		return errors.New("catalog: import streams: other brokers have joined")
	}
	for i := range c.Entries {
		e := c.Entries[i]
		key := e.Spec.Name.String()
		if t.next.entries[key] != nil {
			continue
		}
		e.Places = make([]ShardPlace, e.Spec.Shards)
		for node, b := range t.old.brokers {
			for k := range e.Places {
				e.Places[k] = ShardPlace{Owner: node, Instance: b.Instance, Epoch: 1}
			}
		}
		t.setEntry(&e)
	}
	for _, g := range c.Graves {
		if !slices.ContainsFunc(t.next.graves, func(have grave) bool { return have.name == g.name }) {
			t.dig(g)
			t.result.Changed = true
		}
	}
	if c.Floor > t.next.floor {
		t.next.floor = c.Floor
		t.result.Changed = true
	}
	return nil
}

func (FinishImport) kind() Kind { return "finish_import" }

func (FinishImport) apply(t *transition) error {
	if t.old.importing {
		t.next.importing = false
		t.result.Changed = true
	}
	return nil
}

func (SetSettings) kind() Kind { return "set_settings" }

func (c SetSettings) apply(t *transition) error {
	want, s := t.old.settings, c.Settings
	if s.Groups != 0 && s.Groups != want.Groups {
		return fmt.Errorf("catalog: change settings: %d groups: there are %d, and that never changes", s.Groups, want.Groups)
	}
	if s.Replicas != 0 {
		want.Replicas = s.Replicas
	}
	if s.MaxStreams != 0 {
		want.MaxStreams = s.MaxStreams
	}
	if s.MaxGraves != 0 {
		want.MaxGraves = s.MaxGraves
	}
	if s.ReserveBlock != 0 {
		want.ReserveBlock = s.ReserveBlock
	}
	if err := want.Validate(); err != nil {
		return fmt.Errorf("catalog: change settings: %w", err)
	}
	if want != t.old.settings {
		t.next.settings = want
		t.result.Changed = true
	}
	return nil
}
