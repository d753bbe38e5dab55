package quorum

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// announceAfter is how long a leader leaves it to the next entries to say what is committed.
const announceAfter = 3 * time.Millisecond

// announcer has followers apply what is committed soon: raft tells them with the next
// entries, and if there are none only after Timings.Commit, which is long because
// it is paid by idle groups as well.
type announcer struct {
	g       *Group
	leading atomic.Bool   // as leadership has told
	wake    chan struct{} // has room for one
}

func newAnnouncer(g *Group) *announcer { return &announcer{g: g, wake: make(chan struct{}, 1)} }

// applied is called when the machine has an entry more.
func (a *announcer) applied() {
	if !a.leading.Load() {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default: // it is awake
	}
}

func (a *announcer) loop() {
	timer := time.NewTimer(announceAfter)
	defer timer.Stop()
	for {
		select {
		case <-a.wake:
		case <-a.g.closing:
			return
		}
		timer.Reset(announceAfter)
		select {
		case <-timer.C:
		case <-a.g.closing:
			return
		}
		a.announce()
	}
}

// announce tells the followers that have the newest committed entry and were not told
// that it is. Nobody waits for what they say.
func (a *announcer) announce() {
	g := a.g
	term, commit := g.raft.CurrentTerm(), g.raft.CommitIndex()
	last, ok := g.log.at(commit)
	if !ok || last.term == 0 || g.raft.State() != raft.Leader {
		return
	}
	args := &raft.AppendEntriesRequest{
		RPCHeader: header(g.trans.self), Term: term,
		PrevLogEntry: commit, PrevLogTerm: last.term, LeaderCommitIndex: commit,
	}
	for _, s := range g.raft.GetConfiguration().Configuration().Servers {
		f, ok := g.trans.progress.at(s.ID, term)
		if !ok || f.match < commit || f.told >= commit || string(s.ID) == g.n.self {
			continue
		}
		l, err := g.trans.link(s.Address)
		if err != nil {
			return
		}
		if _, err := g.trans.sendEntries(l, s.ID, args); err != nil {
			g.slg.Debug("follower is not told of the last commit yet", "to", s.ID, "err", err)
		}
	}
}
