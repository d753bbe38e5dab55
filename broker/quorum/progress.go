package quorum

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// progress is how far this leader knows each of its followers to be, which raft does
// not tell.
type progress struct {
	mu sync.Mutex
	of map[raft.ServerID]follower
}

type follower struct {
	term    uint64 // of the leader that heard it
	match   uint64
	told    uint64 // the commit that was sent to it last
	contact time.Time
}

// matched says that a follower has the entries up to one.
func (p *progress) matched(id raft.ServerID, term, match uint64) {
	p.change(id, term, func(f *follower) { f.match, f.contact = max(f.match, match), time.Now() })
}

// tell says that a follower is being told of a commit.
func (p *progress) tell(id raft.ServerID, term, commit uint64) {
	p.change(id, term, func(f *follower) { f.told = max(f.told, commit) })
}

// untell says that it was not, for what anybody knows.
func (p *progress) untell(id raft.ServerID, term uint64) {
	p.change(id, term, func(f *follower) { f.told = 0 })
}

func (p *progress) change(id raft.ServerID, term uint64, change func(*follower)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.of[id]
	if f.term > term {
		return
	}
	if f.term < term {
		f = follower{term: term}
	}
	change(&f)
	p.of[id] = f
}

// at is what is known of a follower in a term.
func (p *progress) at(id raft.ServerID, term uint64) (follower, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.of[id]
	return f, ok && f.term == term
}

// keep forgets all followers but those of a configuration.
func (p *progress) keep(c raft.Configuration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.of {
		found := false
		for _, s := range c.Servers {
			found = found || s.ID == id
		}
		if !found {
			delete(p.of, id)
		}
	}
}
