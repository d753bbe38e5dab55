package quorum

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Transfer gives leadership to another voter; the zero Server: to the best one. It returns
// when this server leads no more.
func (g *Group) Transfer(ctx context.Context, s Server) error {
	if g.raft.State() != raft.Leader {
		return ErrNotLeader
	}
	if stuck := g.watch.stuck(); stuck != nil {
		return stuck
	}
	if s == (Server{}) {
		best, ok := g.heir()
		if !ok {
			return fmt.Errorf("%w: no other voter is near", ErrBehind)
		}
		s = best
	}
	switch m, ok := g.member(s); {
	case s == g.n.cfg.Self:
		return nil
	case !ok:
		return fmt.Errorf("%w: %s", ErrNotMember, s)
	case !m.Voter:
		return fmt.Errorf("%w: %s", ErrNotVoter, s) // B77
	}
	if ok, lag := g.CaughtUp(s); !ok {
		return fmt.Errorf("%w: %s lacks %d entries", ErrBehind, s, lag)
	}
	done := make(chan error, 1)
	if !g.run(func() {
		f := g.raft.LeadershipTransferToServer(raft.ServerID(s.String()), raft.ServerAddress(s.String()))
		endWith(f, g.ended)
		done <- f.Error()
	}) {
		return ErrClosed
	}
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("quorum: group %d: transfer to %s: %w", g.id, s, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heir is the voter that lacks least of those heard lately.
func (g *Group) heir() (Server, bool) {
	members, err := g.Members()
	if err != nil {
		return Server{}, false
	}
	type candidate struct {
		server  Server
		match   uint64
		contact time.Time
	}
	var near []candidate
	for _, m := range members {
		if !m.Voter || m.Server == g.n.cfg.Self {
			continue
		}
		if ok, _ := g.CaughtUp(m.Server); ok {
			f, _ := g.trans.progress.at(raft.ServerID(m.String()), g.raft.CurrentTerm())
			near = append(near, candidate{m.Server, f.match, f.contact})
		}
	}
	if len(near) == 0 {
		return Server{}, false
	}
	best := slices.MaxFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.match, b.match), a.contact.Compare(b.contact))
	})
	return best.server, true
}
