package quorum

import (
	"time"

	"github.com/hashicorp/raft"
)

// leadership tells the group's owner who leads, which is raft's word unless the group
// is stuck: then this server does not lead, whatever raft believes.
type leadership struct {
	g       *Group
	changes chan bool     // raft's; it waits for room
	wake    chan struct{} // stuck or not has changed
	told    Leadership    // the loop's
}

// leadershipChanges is how many changes may wait until raft does.
const leadershipChanges = 64

func newLeadership(g *Group) *leadership {
	return &leadership{g: g, changes: make(chan bool, leadershipChanges), wake: make(chan struct{}, 1)}
}

func (l *leadership) loop() {
	leads := false
	for {
		select {
		case leads = <-l.changes:
		case <-l.wake:
		case <-l.g.ended:
			l.tell(false)
			return
		}
		l.tell(leads && l.g.watch.stuck() == nil)
	}
}

func (l *leadership) tell(leading bool) {
	if leading == l.told.Leading {
		return
	}
	if leading {
		l.told.Term = l.g.raft.CurrentTerm()
	}
	l.told.Leading = leading
	l.g.announcer.leading.Store(leading)
	l.g.slg.Info("leadership", "leading", leading, "term", l.told.Term)
	if m := l.g.n.cfg.Metrics.Leadership; m != nil {
		m(l.g.id, leading)
	}
	if l.g.cfg.OnLeader != nil {
		l.g.cfg.OnLeader(l.told)
	}
}

// stuckChanged is the watch's: the group got stuck, or well again.
func (g *Group) stuckChanged(stuck *StuckError) {
	if m := g.n.cfg.Metrics.Stuck; m != nil {
		m(g.id, stuck != nil)
	}
	if stuck != nil {
		g.slg.Error("stuck; others may lead meanwhile", "err", error(stuck))
		if stuck.Err == nil { // else raft answers, and knows better what came of them
			g.asked.giveUp(time.Now())
		}
	} else {
		g.slg.Info("no longer stuck")
	}
	select {
	case g.leader.wake <- struct{}{}:
	default: // it is awake
	}
}

// impatience has a follower stand for election as soon as it may. raft looks for its leader
// only at random moments one to two timeouts apart; this makes it look when the time has come,
// and earlier when the leader's connection has ended, which is what a dead process leaves.
type impatience struct {
	since   time.Time // the contact that is waited beyond
	stagger time.Duration
	lowered bool
}

// lookAround is called by the node's ticker.
func (g *Group) lookAround(now time.Time) {
	t := g.n.cfg.Timings
	i := &g.impatient
	_, leader := g.raft.LeaderWithID()
	contact := g.raft.LastContact()
	if g.raft.State() != raft.Follower || leader == "" || contact.IsZero() {
		i.calm(g)
		return
	}
	if contact != i.since { // it is alive: decide anew how long to wait, so that followers differ
		i.calm(g)
		i.since, i.stagger = contact, g.n.random(t.Heartbeat/4)
	}
	// Until then raft's own look, at its random moment, decides: a machine that is busy
	// makes heartbeats late.
	limit := t.Heartbeat * 3 / 2
	if s, err := ParseServer(string(leader)); err == nil && g.n.heard.gone(s) {
		limit = max(t.Lease, t.Heartbeat/2)
	}
	if now.Sub(contact) < limit+i.stagger || i.lowered || !g.voter() {
		return
	}
	// Lowering the timeout has raft look now. It does not stay so: a leader beats by it.
	i.lowered = true
	c := g.raft.ReloadableConfig()
	c.HeartbeatTimeout = min(limit, t.impatient())
	if err := g.raft.ReloadConfig(c); err != nil {
		g.slg.Debug("raft does not take a lower timeout", "err", err)
	}
}

// impatient is a heartbeat timeout that is less than what it was, for raft to notice.
func (t Timings) impatient() time.Duration { return t.Heartbeat - time.Millisecond }

// calm has raft be as patient as it was.
func (i *impatience) calm(g *Group) {
	if !i.lowered {
		return
	}
	i.lowered = false
	c := g.raft.ReloadableConfig()
	c.HeartbeatTimeout = g.n.cfg.Timings.Heartbeat
	if err := g.raft.ReloadConfig(c); err != nil {
		g.slg.Debug("raft does not take its timeout back", "err", err)
	}
}
