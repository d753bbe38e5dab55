package replica

import (
	"errors"
	"time"

	"felix.dev/felix/broker/seglog"
)

// maxTrims bounds one entry.
const maxTrims = 1024

// trimming proposes, while this broker serves, what retention takes: so all replicas
// agree on what is gone, and none removes what a follower has not stored yet.
func (g *Group) trimming() {
	t := time.NewTicker(g.cfg.TrimEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-g.ctx.Done():
			return
		}
		if g.Serving() {
			g.proposeTrims()
		}
	}
}

func (g *Group) proposeTrims() {
	var trims []trim
	for _, s := range g.all() {
		set := s.settings.Load()
		if set == nil || (set.MaxBytes == 0 && set.MaxAge == 0) || s.broken() != nil {
			continue
		}
		point, err := s.log.TrimPoint(set.MaxBytes, set.MaxAge)
		if err != nil {
			g.cfg.Log.Warn("retention cannot look at a shard", "shard", s.key, "err", err)
			continue
		}
		if point = min(point, s.Mark()); point > s.Oldest() && len(trims) < maxTrims {
			trims = append(trims, trim{s.slot, point})
		}
	}
	if len(trims) == 0 {
		return
	}
	p := g.Propose(appendTrims(nil, trims))
	<-p.Done() // within the quorum group's patience
	if _, err := p.Result(); err != nil {
		g.cfg.Log.Debug("retention waits for the next time", "err", err)
	}
}

func (g *Group) applyTrims(trims []trim) {
	for _, t := range trims {
		s := g.bySlot[t.slot]
		if s == nil {
			continue
		}
		s.TrimBefore(t.oldest)
		s.trimLog()
	}
}

// trimLog gives up what readers cannot ask for any more. What cannot be removed now is
// tried again with the next trim.
func (s *shard) trimLog() {
	if _, err := s.log.TrimTo(min(s.Oldest(), s.log.Next())); err != nil && !errors.Is(err, seglog.ErrClosed) {
		s.g.cfg.Log.Warn("retention cannot remove old segments", "shard", s.key, "err", err)
	}
}
