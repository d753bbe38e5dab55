package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/placement"
	"felix.dev/felix/broker/quorum"
)

// SetDraining has a broker give away everything that it holds, or take part
// again. It returns when the catalog says so; Status shows how far it has come.
// Undraining is never refused; draining is when there would be nobody left to hold
// anything.
func (c *Cluster) SetDraining(ctx context.Context, node string, draining bool) error {
	st := c.State()
	if _, ok := st.Broker(node); !ok {
		return noBroker(node)
	}
	if draining && !slices.ContainsFunc(st.Brokers(), func(b catalog.Broker) bool { return b.NodeID != node && !b.Draining }) {
		return refuse(CodeRefused, "broker %s cannot be drained: there is no other broker that is not being drained, so that nobody could take what it has", node)
	}
	return told(c.Propose(ctx, catalog.SetDraining{Node: node, Draining: draining}))
}

// Remove takes a broker out of the cluster, for good. It is refused while the
// broker holds anything, and while the metadata group would be without a majority
// after it. Force gives up the shards that only this broker has.
func (c *Cluster) Remove(ctx context.Context, node string, force bool) error {
	return c.operate(ctx, operation{Name: operationRemove, Node: node, Force: force})
}

// Move has a replica of a group go from one broker to another, where it stays as
// long as the brokers do not change. It may take a replica of another group to go
// the other way, so that they hold about as much as each other.
func (c *Cluster) Move(ctx context.Context, group uint32, from, to string) error {
	return c.operate(ctx, operation{Name: operationMove, Group: group, From: from, To: to})
}

// Balance has leaders go where they belong now, instead of gently.
func (c *Cluster) Balance(ctx context.Context) error {
	return c.operate(ctx, operation{Name: operationBalance})
}

// TransferLeader has another broker lead a group. Without a broker it is the one
// that should.
func (c *Cluster) TransferLeader(ctx context.Context, group uint32, to string) error {
	g, ok := c.State().Group(group)
	if !ok {
		return refuse(CodeNotFound, "there is no group %d", group)
	}
	from, _, known := c.Leader(group)
	if to == "" {
		fit := c.fitToLead()
		i := slices.IndexFunc(g.Target, func(node string) bool { return fit(group, node) })
		if i < 0 {
			return later(CodeBusy, "no broker is fit to lead group %d now", group)
		}
		to = g.Target[i]
	}
	switch {
	case !known:
		return later(CodeNoLeader, "group %d has no leader now", group)
	case from == to:
		return nil
	}
	return c.transfer(ctx, handover{group: group, from: from, to: to})
}

// operate has the metadata leader do something.
func (c *Cluster) operate(ctx context.Context, op operation) error {
	leader, ok := c.metadataLeader()
	if !ok {
		return later(CodeNoLeader, "%s", c.noLeaderReason())
	}
	return c.call(ctx, leader, methodOperate, op, nil, func(ctx context.Context) error { return c.operateHere(ctx, op) })
}

// onOperate does what an admin has asked another broker for.
func (c *Cluster) onOperate(ctx context.Context, _ string, body json.RawMessage) (any, error) {
	var op operation
	if err := json.Unmarshal(body, &op); err != nil {
		return nil, refuse(CodeInvalid, "operate: %v", err)
	}
	return struct{}{}, c.operateHere(ctx, op)
}

func (c *Cluster) operateHere(ctx context.Context, op operation) error {
	if err := c.metadataReady(ctx); err != nil {
		return err
	}
	switch op.Name {
	case operationRemove:
		return c.removeBroker(ctx, op.Node, op.Force)
	case operationMove:
		return c.moveReplica(ctx, op)
	case operationBalance:
		c.steward.rush.Store(true)
		c.steward.wake.now()
		return nil
	}
	return refuse(CodeVersion, "broker %s does not know how to %q: it runs another release", c.cfg.Self.Node, op.Name)
}

func (c *Cluster) removeBroker(ctx context.Context, node string, force bool) error {
	st := c.State()
	b, ok := st.Broker(node)
	if !ok { // removed before, or never there: the catalog knows
		return told(c.Propose(ctx, catalog.RemoveBroker{Node: node}))
	}
	if node == c.cfg.Self.Node {
		return refuse(CodeRefused, "broker %s leads the metadata group: drain it first", node)
	}
	if err := c.mayLose(serverOf(b)); err != nil {
		return err
	}
	if err := told(c.Propose(ctx, catalog.RemoveBroker{Node: node, Instance: b.Instance, Force: force})); err != nil {
		return err
	}
	c.cfg.Log.Info("removed a broker", "broker", node, "instance", b.Instance)
	// It may not hear of it by itself, as it is no member any more. One that is away
	// asks when it comes back.
	call, cancel := context.WithTimeout(ctx, c.cfg.Timings.Call)
	defer cancel()
	if err := c.cfg.Peer.CallAddr(call, b.Peer, methodGone, goneNotice{Cluster: st.Cluster(), Instance: b.Instance}, nil); err != nil {
		c.cfg.Log.Info("the broker that was removed does not answer", "broker", node, "error", err)
	}
	return nil
}

// mayLose refuses to take a server out of the metadata group if those that are
// left and are there would be no majority.
func (c *Cluster) mayLose(s quorum.Server) error {
	meta := c.meta.Load()
	members, err := meta.Members()
	if err != nil {
		return later(CodeNoLeader, "list members of the metadata group: %v", err)
	}
	v := view{self: c.cfg.Self, members: members, caughtUp: meta.CaughtUp}
	if m, in := memberOf(members, s); !in || !m.Voter {
		return nil
	}
	if alive, need := aliveWithout(v, s); alive < need {
		return refuse(CodeRefused, "without broker %s the metadata group would have no majority: %d of %d needed voters are there", s.Node, alive, need)
	}
	return nil
}

func (c *Cluster) moveReplica(ctx context.Context, op operation) error {
	st := c.State()
	g, ok := st.Group(op.Group)
	if !ok {
		return refuse(CodeNotFound, "there is no group %d", op.Group)
	}
	b, ok := st.Broker(op.To)
	switch {
	case op.From == op.To:
		return refuse(CodeInvalid, "from and to are the same broker")
	case !ok:
		return noBroker(op.To)
	case b.Draining:
		return refuse(CodeRefused, "broker %s is being drained and takes nothing", op.To)
	case !c.around.up(serverOf(b)):
		return later(CodeBusy, "broker %s does not answer", op.To)
	case slices.Contains(g.Target, op.To) && !slices.Contains(g.Target, op.From):
		return nil // moved before
	case slices.Contains(g.Target, op.To):
		return refuse(CodeInvalid, "group %d is on broker %s already", op.Group, op.To)
	}
	if !slices.Contains(g.Target, op.From) {
		return refuse(CodeInvalid, "group %d is not on broker %s: it is on %s", op.Group, op.From, strings.Join(g.Target, ", "))
	}
	targets, ok := targetsOfMove(placement.View{State: st, Down: c.down(st)}, &g, op.From, op.To)
	if !ok {
		return refuse(CodeRefused, "group %d would not stay on broker %s: the brokers would not hold about as much as each other, or zones would not be spread over",
			op.Group, op.To)
	}
	return told(c.Propose(ctx, catalog.SetTargets{Targets: targets}))
}

// targetsOfMove are the targets by which a replica goes from one broker to another
// and stays there. If the brokers would not hold about as much as each other then,
// a replica of another group goes the other way.
func targetsOfMove(v placement.View, g *catalog.Group, from, to string) ([]catalog.GroupTarget, bool) {
	moved := catalog.GroupTarget{ID: g.ID, Nodes: replaced(g.Target, from, to)}
	stays := func(targets ...catalog.GroupTarget) bool {
		after, r := v.State.Apply(v.State.Index()+1, catalog.SetTargets{Targets: targets}, time.Time{})
		plan := placement.Plan(placement.View{State: after, Down: v.Down})
		return r.Err == nil && !slices.ContainsFunc(plan.Targets, func(t catalog.GroupTarget) bool {
			return slices.ContainsFunc(targets, func(is catalog.GroupTarget) bool {
				return is.ID == t.ID && !sameNodes(is.Nodes, t.Nodes)
			})
		})
	}
	if stays(moved) {
		return []catalog.GroupTarget{moved}, true
	}
	for _, h := range v.State.Groups() {
		if h.ID == g.ID || h.ID == catalog.MetadataGroup || len(h.Members) == 0 || !slices.Contains(h.Target, to) || slices.Contains(h.Target, from) {
			continue
		}
		back := catalog.GroupTarget{ID: h.ID, Nodes: replaced(h.Target, to, from)}
		if stays(moved, back) {
			return []catalog.GroupTarget{moved, back}, true
		}
	}
	return nil, false
}

func replaced(nodes []string, from, to string) []string {
	out := slices.Clone(nodes)
	out[slices.Index(out, from)] = to
	return out
}

// sameNodes tells whether two targets have the same brokers, whoever is to lead.
func sameNodes(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func noBroker(node string) error {
	return refuse(CodeNotFound, "there is no broker %s in this cluster", node)
}

// told is what the catalog said of a command, as an error.
func told(r catalog.Result, err error) error {
	if err != nil || r.Err == nil {
		return err
	}
	var holds *catalog.HoldsError
	switch {
	case errors.As(r.Err, &holds):
		return refuse(CodeRefused, "%s", holdsText(holds))
	case errors.Is(r.Err, catalog.ErrNoBroker):
		return refuse(CodeNotFound, "%v", r.Err)
	case errors.Is(r.Err, catalog.ErrStale), errors.Is(r.Err, catalog.ErrPlacement), errors.Is(r.Err, catalog.ErrImporting):
		return later(CodeBusy, "%v", r.Err)
	}
	return refuse(CodeRefused, "%v", r.Err)
}

func holdsText(h *catalog.HoldsError) string {
	var what []string
	if len(h.Groups) > 0 {
		what = append(what, fmt.Sprintf("replicas of groups %v", h.Groups))
	}
	if h.Shards > 0 {
		what = append(what, fmt.Sprintf("%d shards that only it has", h.Shards))
	}
	return fmt.Sprintf("broker %s still holds %s: drain it, and remove it when it holds nothing", h.Node, strings.Join(what, " and "))
}
