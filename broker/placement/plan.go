package placement

import "felix.dev/felix/broker/catalog"

// View is what a placement is decided upon.
type View struct {
	State *catalog.State
	// Down are nodes that are not reachable now. They keep what they hold, because
	// they are expected back, and get nothing new while others are there.
	Down map[string]bool
}

// Changes are what has to be done so that the cluster is as it should be.
type Changes struct {
	// Targets are the groups whose target changes.
	Targets []catalog.GroupTarget
	// Cancels are moves under way that end nowhere any more: first of all.
	Cancels []catalog.MoveShard
	// Moves are shards with one owner that have to go to another.
	Moves []catalog.MoveShard
}

// Empty says that nothing has to change.
func (c *Changes) Empty() bool { return len(c.Targets)+len(c.Cancels)+len(c.Moves) == 0 }

// Plan computes what has to change. Planning again once all of it is in the state
// changes nothing.
func Plan(v View) Changes {
	c := Changes{Targets: groupTargets(v)}
	c.Moves, c.Cancels = ownerMoves(v)
	return c
}
