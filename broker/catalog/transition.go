package catalog

import (
	"maps"
	"slices"
	"time"
)

// transition is one command being applied: old stays as it is, next becomes the
// new state. What next shares with old is copied before it is changed.
type transition struct {
	old, next *State
	at        time.Time
	limits    Settings
	result    Result

	ownEntries, ownBrokers, ownGroups bool // copied already
}

// transit applies a command within limits, which are the cluster's settings or a
// single broker's configuration.
func (s *State) transit(index uint64, cmd Command, at time.Time, limits Settings) (*State, Result) {
	if index != 0 && index <= s.index {
		return s, Result{}
	}
	next := *s
	t := &transition{old: s, next: &next, at: at.UTC().Round(0), limits: limits}
	if err := t.apply(cmd); err != nil {
		t.result = Result{Err: err}
	}
	if !t.result.Changed {
		if index == 0 {
			return s, t.result
		}
		next = *s // nothing of a refused change stays
	} else {
		next.version = index
	}
	next.index = index
	return &next, t.result
}

func (t *transition) apply(cmd Command) error {
	if err := t.allowed(cmd); err != nil {
		return err
	}
	return cmd.apply(t)
}

// allowed refuses what a cluster has to be there for, or has to be complete for.
func (t *transition) allowed(cmd Command) error {
	switch cmd.(type) {
	case FoundCluster:
		return nil
	case CreateStream, UpdateStream, DeleteStream, SealStream:
		if t.old.importing {
			return ErrImporting
		}
	}
	switch cmd.(type) {
	case CreateStream, UpdateStream, DeleteStream, ReserveOffsets:
		return nil
	}
	if t.old.cluster == "" {
		return ErrNoCluster
	}
	return nil
}

func (t *transition) setEntry(e *Entry) {
	t.mutableEntries()[e.Spec.Name.String()] = e
	t.result.Changed = true
}

func (t *transition) removeEntry(n Name) {
	delete(t.mutableEntries(), n.String())
	t.result.Changed = true
}

func (t *transition) mutableEntries() map[string]*Entry {
	if !t.ownEntries {
		t.next.entries, t.ownEntries = maps.Clone(t.next.entries), true
	}
	return t.next.entries
}

func (t *transition) setBroker(b Broker) {
	t.mutableBrokers()[b.NodeID] = &b
	t.result.Changed = true
}

func (t *transition) removeBroker(node string) {
	delete(t.mutableBrokers(), node)
	t.result.Changed = true
}

func (t *transition) mutableBrokers() map[string]*Broker {
	if !t.ownBrokers {
		t.next.brokers, t.ownBrokers = maps.Clone(t.next.brokers), true
	}
	if t.next.brokers == nil {
		t.next.brokers = make(map[string]*Broker)
	}
	return t.next.brokers
}

func (t *transition) setGroup(g Group) {
	if !t.ownGroups {
		t.next.groups, t.ownGroups = maps.Clone(t.next.groups), true
	}
	if t.next.groups == nil {
		t.next.groups = make(map[uint32]*Group)
	}
	t.next.groups[g.ID] = &g
	t.result.Changed = true
}

// forgetInstance makes an instance one that may not come back.
func (t *transition) forgetInstance(node, instance string) {
	t.next.removed = bounded(append(slices.Clone(t.next.removed), instanceID{node, instance}), maxRemoved)
	t.result.Changed = true
}

// bounded keeps the newest of a list.
func bounded[T any](list []T, limit int) []T { return list[max(0, len(list)-limit):] }

func (t *transition) answer(e *Entry) { t.result.Entry = e }

// knownBroker refuses a node that is not there.
func (t *transition) knownBroker(node string) (*Broker, error) {
	if b := t.next.brokers[node]; b != nil {
		return b, nil
	}
	return nil, &BrokerError{Node: node, Err: ErrNoBroker}
}
