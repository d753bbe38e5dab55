package quorum

import "github.com/hashicorp/raft"

// applied is how far the machine is. Raft's own entries (elections, members, barriers)
// never come to it: where nothing else follows, it has them too.
func (g *Group) applied(commit uint64) uint64 {
	at := max(g.fsm.applied.Load(), g.passed.Load())
	from := at
	for at < commit {
		m, ok := g.log.at(at + 1)
		if !ok || m.term == 0 || m.typ == raft.LogCommand { // term 0: it is gone, whatever it was
			break
		}
		at++
	}
	if at > from {
		g.passed.Store(at)
	}
	return at
}
