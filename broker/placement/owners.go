package placement

import "felix.dev/felix/broker/catalog"

// ownerLoad counts the shards that each broker has alone, or is about to have.
func ownerLoad(s *catalog.State) map[string]int {
	load := make(map[string]int)
	for _, e := range s.List() {
		for _, p := range e.Places {
			switch {
			case p.Moving != "":
				load[p.Moving]++
			case p.Owner != "":
				load[p.Owner]++
			}
		}
	}
	return load
}

// ownerMoves are the moves of shards that must leave their owner, and those moves
// under way whose destination has to go as well.
func ownerMoves(v View) (moves, cancels []catalog.MoveShard) {
	b := brokersOf(v)
	load := ownerLoad(v.State)
	for _, e := range v.State.List() {
		if e.Deleting {
			continue
		}
		for i, p := range e.Places {
			if p.Owner == "" {
				continue
			}
			m := catalog.MoveShard{Name: e.Spec.Name, Incarnation: e.Incarnation, Shard: uint32(i), Epoch: p.Epoch}
			if p.Moving != "" {
				if b.has(p.Moving) {
					continue // under way
				}
				m.To = p.Moving
				cancels = append(cancels, m)
				m.Epoch++ // which calling it off does
				load[p.Moving]--
				load[p.Owner]++
			}
			to := least(b.up(), func(n string) int { return load[n] })
			if to == "" || to == p.Owner || !mustGo(v.State, &b, &e, p) {
				continue
			}
			load[p.Owner]--
			load[to]++
			m.To = to
			moves = append(moves, m)
		}
	}
	return moves, cancels
}

// mustGo tells whether a shard has to leave its owner, and can. A durable shard
// whose data is gone cannot be moved; what is to become of it is for a person to
// say.
func mustGo(s *catalog.State, b *brokers, e *catalog.Entry, p catalog.ShardPlace) bool {
	if b.has(p.Owner) {
		return false
	}
	if e.Spec.Durability == catalog.Memory {
		return true
	}
	owner, known := s.Broker(p.Owner)
	return known && owner.Instance == p.Instance
}
