package replica

import (
	"context"
	"errors"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/seglog"
)

// repairRetry is how long a shard that could not be repaired waits for the next attempt.
const repairRetry = 2 * time.Second

// repairing makes shards whole that are not: leadership is given to a broker that has
// their records, then they are fetched from it.
func (g *Group) repairing() {
	said := make(map[*shard]string) // what was said last of each
	for {
		wait := time.Duration(-1)
		for _, s := range g.all() {
			if s.broken() == nil {
				continue
			}
			err := g.repairOne(s)
			if err == nil {
				delete(said, s)
				continue
			}
			wait = repairRetry
			if text := err.Error(); said[s] != text && g.ctx.Err() == nil {
				said[s] = text
				g.cfg.Log.Warn("a shard could not be repaired yet, it is tried again", "shard", s.key, "err", err)
			}
		}
		if !g.waitForRepairs(wait) {
			return
		}
	}
}

// waitForRepairs waits until a shard may need it; false: the group is closed.
func (g *Group) waitForRepairs(again time.Duration) bool {
	var after <-chan time.Time
	if again >= 0 {
		t := time.NewTimer(again)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-g.repairs:
	case <-after:
	case <-g.ctx.Done():
		return false
	}
	return true
}

var errLeads = errors.New("replica: it leads, and no other broker has taken over")

func (g *Group) repairOne(s *shard) error {
	if g.State().Leading { // nobody has more than the leader: another must be it
		ctx, cancel := context.WithTimeout(g.ctx, repairRetry)
		err := g.Transfer(ctx, quorum.Server{})
		cancel()
		if g.State().Leading {
			return errors.Join(errLeads, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repair(g.ctx)
}

// repair fetches what the log lacks, or all of it if it is damaged. Nothing is given up
// before another broker has answered that it has the records. The caller holds s.mu.
func (s *shard) repair(ctx context.Context) error {
	err := s.broken()
	if err == nil {
		return nil
	}
	// What is behind damage is asked for as well. A log that lacks records may hold less than its shard has.
	_, damaged := errors.AsType[*seglog.CorruptionError](err)
	f := filling{s: s, upTo: max(s.Mark(), s.log.Next()), oldest: s.Oldest(), rebuild: damaged, peers: s.g.cfg.Peers()}
	if err := f.run(ctx); err != nil {
		return err
	}
	if err := s.sync(s.Mark()); err != nil { // a manifest may say that they are on disk
		return err
	}
	s.trouble.Store(nil)
	s.Repaired()
	s.g.cfg.Log.Info("a shard is whole again", "shard", s.key)
	s.g.mu.Lock()
	s.lead()
	s.g.mu.Unlock()
	s.g.cfg.Changed()
	return nil
}
