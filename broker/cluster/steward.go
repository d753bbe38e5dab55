package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// steward is what the metadata leader does for the cluster: it decides where
// things are to be, and who is to lead. It also notices that this broker has been
// cut off for long.
type steward struct {
	c       *Cluster
	wake    kick
	balance *balancer
	rush    atomic.Bool // somebody asked for balance now
	doubt   atomic.Bool // somebody said that this broker was removed

	cancel context.CancelFunc
	done   chan struct{}

	placed     placed    // what the placement was last found to be right for
	leaderless time.Time // since when; zero: there is a metadata leader
}

// placed is what a placement depends on.
type placed struct {
	version uint64
	down    string
}

func newSteward(c *Cluster) *steward {
	return &steward{c: c, wake: newKick(), balance: newBalancer(c.cfg.Timings.Settle)}
}

func (s *steward) start() {
	ctx, cancel := context.WithCancel(s.c.ctx)
	s.cancel, s.done = cancel, make(chan struct{})
	s.c.wg.Go(func() {
		defer close(s.done)
		s.run(ctx)
	})
}

func (s *steward) stop() {
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
}

// doubts has this broker ask whether it is still one of the cluster.
func (s *steward) doubts() {
	s.doubt.Store(true)
	s.wake.now()
}

func (s *steward) run(ctx context.Context) {
	t := s.c.cfg.Timings
	for {
		changed, led := s.c.Changed(), s.c.LeadersChanged()
		again := t.Exchange
		if s.c.meta.Load().State().Leading {
			unsettled, err := s.govern(ctx)
			if err != nil && ctx.Err() == nil {
				s.c.cfg.Log.Warn("the cluster could not be put in order; trying again", "error", err)
			}
			if unsettled || err != nil {
				again = t.Retry
			}
		} else {
			s.lookForLeader(ctx)
		}
		timer := time.NewTimer(jittered(again))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-led:
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
		if !rest(ctx) {
			return
		}
	}
}

// govern brings the catalog's placement up to date and hands over at most one
// leadership. unsettled says that there is more to come.
func (s *steward) govern(ctx context.Context) (unsettled bool, err error) {
	c := s.c
	s.leaderless = time.Time{}
	ready, cancel := context.WithTimeout(ctx, c.cfg.Timings.Change)
	defer cancel()
	if err := c.metadataReady(ready); err != nil {
		return true, err
	}
	if c.State().Importing() {
		return true, nil
	}
	more, err := s.place(ctx)
	if err != nil || more {
		return true, err
	}
	return s.level(ctx), nil
}

// level hands over one leadership, if one is at the wrong broker.
func (s *steward) level(ctx context.Context) (unsettled bool) {
	c := s.c
	now := time.Now()
	if s.rush.Swap(false) {
		s.balance.forget()
	}
	groups := c.State().Groups()
	leader := func(id uint32) string {
		node, _, _ := c.Leader(id)
		return node
	}
	s.balance.calm(now, groups)
	h, ok, pending := s.balance.next(now, groups, leader, c.fitToLead())
	if ok {
		c.cfg.Log.Info("balancing: another broker is to lead", "group", h.group, "from", h.from, "to", h.to)
		call, cancel := context.WithTimeout(ctx, c.cfg.Timings.Change)
		defer cancel()
		if err := c.transfer(call, h); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("balancing has to wait", "group", h.group, "error", err)
		}
	}
	return pending
}

func (c *Cluster) transfer(ctx context.Context, h handover) error {
	return c.call(ctx, h.from, methodTransfer, transferRequest{Group: h.group, To: h.to}, nil, func(ctx context.Context) error {
		return c.handOverTo(ctx, h.group, h.to, c.cfg.Self.Node)
	})
}

// lookForLeader asks around when this broker has not heard of a metadata leader for
// long: it may have been removed while it was away.
func (s *steward) lookForLeader(ctx context.Context) {
	c := s.c
	now := time.Now()
	_, ok := c.metadataLeader()
	switch doubt := s.doubt.Swap(false); {
	case doubt:
	case ok && !s.silent():
		s.leaderless = time.Time{}
		return
	case s.leaderless.IsZero():
		s.leaderless = now
		return
	case now.Sub(s.leaderless) < c.cfg.Timings.Exchange:
		return
	}
	if _, troubles, err := c.registerOnce(ctx); final(err) {
		var e *Error
		if errors.As(err, &e) && e.Code == CodeRemoved {
			c.fail(e)
			return
		}
		c.cfg.Log.Error("the others do not take this broker for one of them", "error", err, "tried", troubles)
	}
}

// silent says that nothing has come from the metadata leader for a while.
func (s *steward) silent() bool {
	st := s.c.meta.Load().State()
	return !st.Leading && !st.LastContact.IsZero() && time.Since(st.LastContact) > s.c.cfg.Timings.Exchange
}
