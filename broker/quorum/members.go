package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// caughtUpEntries is how many entries a member that has caught up may lack: under load
// there are always some on their way.
const caughtUpEntries = 128

// Members are those of the newest configuration, which may not be committed yet.
func (g *Group) Members() ([]Member, error) {
	f := g.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, err
	}
	var members []Member
	for _, s := range f.Configuration().Servers {
		server, err := ParseServer(string(s.ID))
		if err != nil {
			return nil, err
		}
		members = append(members, Member{Server: server, Voter: s.Suffrage == raft.Voter})
	}
	return members, nil
}

func (g *Group) member(s Server) (Member, bool) {
	members, err := g.Members()
	for _, m := range members {
		if err == nil && m.Server == s {
			return m, true
		}
	}
	return Member{}, false
}

// voter tells whether this server is one.
func (g *Group) voter() bool {
	for _, s := range g.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter && string(s.ID) == g.n.self {
			return true
		}
	}
	return false
}

// mayLead tells whether this server may be made leader.
func (g *Group) mayLead() bool { return g.voter() && !g.muted() && !g.log.torn() }

// CaughtUp says, on the leader, whether a member has all but the last few entries,
// and how many it lacks.
func (g *Group) CaughtUp(s Server) (caughtUp bool, lag uint64) {
	last := g.raft.LastIndex()
	if g.raft.State() != raft.Leader {
		return false, last
	}
	if s == g.n.cfg.Self {
		return true, 0
	}
	f, ok := g.trans.progress.at(raft.ServerID(s.String()), g.raft.CurrentTerm())
	if !ok {
		return false, last
	}
	if last > f.match {
		lag = last - f.match
	}
	recent := time.Since(f.contact) < 4*g.n.cfg.Timings.Commit+appendTimeout
	return recent && lag <= caughtUpEntries, lag
}

// AddLearner adds a member that has no say. On the leader; so are all changes of
// members, which wait for each other and for their commit.
func (g *Group) AddLearner(ctx context.Context, s Server) error {
	if err := s.Validate(); err != nil {
		return err
	}
	return g.change(ctx, func(timeout time.Duration) (raft.IndexFuture, error) {
		if _, ok := g.member(s); ok {
			return nil, nil
		}
		return g.raft.AddNonvoter(raft.ServerID(s.String()), raft.ServerAddress(s.String()), 0, timeout), nil
	})
}

// Promote makes a learner a voter; ErrBehind as long as it has not caught up (B87).
func (g *Group) Promote(ctx context.Context, s Server) error {
	return g.change(ctx, func(timeout time.Duration) (raft.IndexFuture, error) {
		switch m, ok := g.member(s); {
		case !ok:
			return nil, fmt.Errorf("%w: %s", ErrNotMember, s)
		case m.Voter:
			return nil, nil
		}
		if ok, lag := g.CaughtUp(s); !ok {
			return nil, fmt.Errorf("%w: %s lacks %d entries", ErrBehind, s, lag)
		}
		return g.raft.AddVoter(raft.ServerID(s.String()), raft.ServerAddress(s.String()), 0, timeout), nil
	})
}

// Demote makes a voter a learner.
func (g *Group) Demote(ctx context.Context, s Server) error {
	return g.change(ctx, func(timeout time.Duration) (raft.IndexFuture, error) {
		switch m, ok := g.member(s); {
		case !ok:
			return nil, fmt.Errorf("%w: %s", ErrNotMember, s)
		case !m.Voter:
			return nil, nil
		}
		return g.raft.DemoteVoter(raft.ServerID(s.String()), 0, timeout), nil
	})
}

// Remove removes a member. A leader that removes itself ceases to lead.
func (g *Group) Remove(ctx context.Context, s Server) error {
	return g.change(ctx, func(timeout time.Duration) (raft.IndexFuture, error) {
		if _, ok := g.member(s); !ok {
			return nil, nil
		}
		return g.raft.RemoveServer(raft.ServerID(s.String()), 0, timeout), nil
	})
}

// change makes one change of members and waits for its commit. ask returns nil when
// there is nothing to do.
func (g *Group) change(ctx context.Context, ask func(timeout time.Duration) (raft.IndexFuture, error)) error {
	select {
	case g.members <- struct{}{}:
	case <-g.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	if !g.run(func() {
		defer func() { <-g.members }()
		done <- g.changeNow(ask)
	}) {
		<-g.members
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())
	}
}

func (g *Group) changeNow(ask func(timeout time.Duration) (raft.IndexFuture, error)) error {
	if stuck := g.watch.stuck(); stuck != nil {
		return stuck
	}
	if g.raft.State() != raft.Leader {
		return ErrNotLeader
	}
	f, err := ask(g.n.cfg.ProposeTimeout)
	if f == nil || err != nil {
		return err
	}
	endWith(f, g.ended)
	err = f.Error()
	if errors.Is(err, raft.ErrEnqueueTimeout) {
		return fmt.Errorf("%w: an earlier change of members is not committed", ErrBusy)
	}
	return outcome(err)
}
