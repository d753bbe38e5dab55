package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// led is told that this broker begins or ceases to lead a group. It returns soon.
func (c *Cluster) led(group uint32) {
	if have := (*c.replicas.open.Load())[group]; have != nil {
		have.wake.now()
	}
	c.leaders.notify()
	c.around.push()
}

// converge brings the members of a group where the catalog wants them, one step at
// a time, whenever this broker leads it. It sleeps while there is nothing to do.
func (c *Cluster) converge(ctx context.Context, r *replica) {
	for {
		changed := c.Changed()
		again := c.stepOnce(ctx, r)
		var retry <-chan time.Time
		var timer *time.Timer
		if again >= 0 {
			timer = time.NewTimer(again)
			retry = timer.C
		}
		select {
		case <-changed:
		case <-r.wake:
		case <-retry:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// stepOnce does the next thing, and says when to look again; negative: when
// something changes.
func (c *Cluster) stepOnce(ctx context.Context, r *replica) (again time.Duration) {
	const whenChanged = -1
	st := r.group.State()
	if !st.Leading {
		r.say("")
		return whenChanged
	}
	v, err := c.viewOf(r, st)
	if err != nil {
		r.say(err.Error())
		return jittered(c.cfg.Timings.Retry)
	}
	s := nextStep(v)
	r.say(s.String())
	switch s.kind {
	case stepNone:
		return whenChanged
	case stepWait:
		return jittered(c.cfg.Timings.Retry)
	default:
	}
	step, cancel := context.WithTimeout(ctx, c.cfg.Timings.Change)
	defer cancel()
	if err := c.act(step, r, st.Term, &v, s); err != nil {
		if ctx.Err() == nil {
			c.cfg.Log.Warn("a change of members has to wait", "group", r.id, "step", s.kind.String(), "server", s.server.String(), "error", err)
		}
		return jittered(c.cfg.Timings.Retry)
	}
	if s.kind != stepReport {
		c.cfg.Log.Info("changed members", "group", r.id, "step", s.kind.String(), "server", s.server.String(), "why", s.why)
	}
	return 0
}

func (r *replica) say(what string) { r.next.Store(&what) }

// String is what a leader does, for people.
func (s step) String() string {
	switch s.kind {
	case stepNone, stepReport:
		return ""
	case stepWait:
		return s.why
	default:
		return fmt.Sprintf("%s %s: %s", s.kind, s.server.Node, s.why)
	}
}

// viewOf is what this broker knows of a group that it leads.
func (c *Cluster) viewOf(r *replica, st quorum.State) (view, error) {
	members, err := r.group.Members()
	if err != nil {
		return view{}, fmt.Errorf("list members: %w", err)
	}
	cat := c.State()
	g, ok := cat.Group(r.id)
	if !ok {
		return view{}, fmt.Errorf("the catalog has no group %d", r.id)
	}
	server := func(node string) (quorum.Server, bool) {
		b, ok := cat.Broker(node)
		return serverOf(b), ok
	}
	v := view{
		self: c.cfg.Self, members: members, want: wanted{voters: g.Target}, server: server,
		up: func(node string) bool {
			s, ok := server(node)
			return ok && c.around.up(s)
		},
		caughtUp: r.group.CaughtUp,
	}
	if g.Leader == c.cfg.Self.Node && g.Term == st.Term {
		v.reported = quorumMembers(g.Members) // else there is something to report in any case
	}
	if r.id == catalog.MetadataGroup {
		for _, b := range cat.Brokers() {
			if !slices.Contains(g.Target, b.NodeID) {
				v.want.learners = append(v.want.learners, b.NodeID)
			}
		}
	}
	return v, nil
}

// act makes a step.
func (c *Cluster) act(ctx context.Context, r *replica, term uint64, v *view, s step) error {
	switch s.kind {
	case stepReport:
		result, err := c.Propose(ctx, catalog.ReportGroup{ID: r.id, Term: term, Leader: c.cfg.Self.Node, Members: catalogMembers(v.members)})
		if err == nil && errors.Is(result.Err, catalog.ErrStale) {
			return nil // another one leads by now
		}
		return errors.Join(err, result.Err)
	case stepAdd:
		return r.group.AddLearner(ctx, s.server)
	case stepPromote:
		return r.group.Promote(ctx, s.server)
	case stepDemote:
		return r.group.Demote(ctx, s.server)
	case stepRemove:
		return r.group.Remove(ctx, s.server)
	case stepTransfer:
		return r.group.Transfer(ctx, s.server)
	default:
		return fmt.Errorf("cluster: no such step: %s", s.kind)
	}
}

func catalogMembers(members []quorum.Member) []catalog.Member {
	out := make([]catalog.Member, len(members))
	for i, m := range members {
		out[i] = catalog.Member{Node: m.Node, Instance: m.Instance, Voter: m.Voter}
	}
	return out
}

func quorumMembers(members []catalog.Member) []quorum.Member {
	out := make([]quorum.Member, len(members))
	for i, m := range members {
		out[i] = quorum.Member{Server: quorum.Server{Node: m.Node, Instance: m.Instance}, Voter: m.Voter}
	}
	return out
}
