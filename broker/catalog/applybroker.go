package catalog

import (
	"fmt"
	"slices"
)

func (RegisterBroker) kind() Kind { return "register_broker" }

func (c RegisterBroker) apply(t *transition) error {
	b := c.Broker
	if err := b.Validate(); err != nil {
		return &BrokerError{Node: b.NodeID, Err: err}
	}
	if t.old.WasRemoved(b.NodeID, b.Instance) {
		return &BrokerError{Node: b.NodeID, Err: ErrRemoved}
	}
	b.Draining, b.Joined = false, t.at
	have := t.old.brokers[b.NodeID]
	switch {
	case have == nil:
		if t.old.importing {
			return &BrokerError{Node: b.NodeID, Err: ErrImporting}
		}
		if len(t.old.brokers) >= MaxBrokers {
			return &BrokerError{Node: b.NodeID, Err: fmt.Errorf("%w (%d)", ErrFull, MaxBrokers)}
		}
	case have.Instance == b.Instance:
		b.Draining, b.Joined = have.Draining, have.Joined
		if b == *have {
			return nil
		}
	case have.Instance != c.Replaces:
		return &BrokerError{Node: b.NodeID, Err: fmt.Errorf("%w (%s)", ErrNodeTaken, have.Instance)}
	default: // its volume is another one
		b.Draining = have.Draining
		t.forgetInstance(have.NodeID, have.Instance)
		t.replaceInstance(have, b.Instance)
	}
	t.setBroker(b)
	return nil
}

// replaceInstance gives the memory shards of a broker whose volume is gone to its
// new instance: they have lost no more than by a restart. Durable ones stay with
// the old instance, and are lost for as long as it is.
func (t *transition) replaceInstance(old *Broker, instance string) {
	for _, e := range t.old.entries {
		if e.Spec.Durability != Memory {
			continue
		}
		var moved []ShardPlace
		for i, p := range e.Places {
			if p.Owner == old.NodeID && p.Instance == old.Instance {
				if moved == nil {
					moved = slices.Clone(e.Places)
				}
				moved[i].Instance = instance
				moved[i].Epoch++
			}
		}
		if moved != nil {
			changed := *e
			changed.Places = moved
			t.setEntry(&changed)
		}
	}
}

func (SetDraining) kind() Kind { return "set_draining" }

func (c SetDraining) apply(t *transition) error {
	b, err := t.knownBroker(c.Node)
	if err != nil {
		return err
	}
	if b.Draining != c.Draining {
		changed := *b
		changed.Draining = c.Draining
		t.setBroker(changed)
	}
	return nil
}

func (RemoveBroker) kind() Kind { return "remove_broker" }

func (c RemoveBroker) apply(t *transition) error {
	b := t.old.brokers[c.Node]
	gone := func(x instanceID) bool {
		return x.Node == c.Node && (x.Instance == c.Instance || c.Instance == "" && b == nil)
	}
	switch {
	case slices.ContainsFunc(t.old.removed, gone):
		return nil
	case b == nil, c.Instance != "" && b.Instance != c.Instance:
		return &BrokerError{Node: c.Node, Err: ErrNoBroker}
	}
	h := t.old.Holdings(c.Node)
	if len(h.Groups) > 0 || h.Shards > 0 && !c.Force {
		return h
	}
	for _, e := range t.old.entries { // nothing is moved to it any more
		if i := slices.IndexFunc(e.Places, func(p ShardPlace) bool { return p.Moving == c.Node }); i >= 0 {
			changed := *e
			changed.Places = slices.Clone(e.Places)
			for ; i < len(changed.Places); i++ {
				if changed.Places[i].Moving == c.Node {
					changed.Places[i].Moving = ""
				}
			}
			t.setEntry(&changed)
		}
	}
	t.forgetInstance(b.NodeID, b.Instance)
	t.removeBroker(b.NodeID)
	return nil
}

// Holdings are what keeps a broker from being removed: groups that it is a member
// of or shall be (of the metadata group only as a voter), and shards that only it
// has or that are on their way to it.
func (s *State) Holdings(node string) *HoldsError {
	h := &HoldsError{Node: node}
	for _, g := range s.Groups() {
		member := slices.ContainsFunc(g.Members, func(m Member) bool {
			return m.Node == node && (m.Voter || g.ID != MetadataGroup)
		})
		if member || slices.Contains(g.Target, node) {
			h.Groups = append(h.Groups, g.ID)
		}
	}
	for _, e := range s.entries {
		for _, p := range e.Places {
			if p.Owner == node || p.Moving == node {
				h.Shards++
			}
		}
	}
	return h
}
