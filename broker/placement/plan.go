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
	// Moves are shards with one owner that have to go to another.
	Moves []catalog.MoveShard
}

// Plan computes what has to change. Planning again once all of it is in the state
// changes nothing.
func Plan(v View) Changes {
	return Changes{Targets: groupTargets(v), Moves: ownerMoves(v)}
}

func groupTargets(View) []catalog.GroupTarget { return nil }

func ownerMoves(View) []catalog.MoveShard { return nil }
