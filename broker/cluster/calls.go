package cluster

import (
	"context"
	"encoding/json"
	"errors"

	"felix.dev/felix/broker/quorum"
)

// answerCalls takes what other brokers ask.
func (c *Cluster) answerCalls() {
	for method, h := range map[string]func(context.Context, string, json.RawMessage) (any, error){
		methodHello:    c.onHello,
		methodJoin:     c.onJoin,
		methodExchange: c.onExchange,
		methodPropose:  c.onPropose,
		methodBarrier:  c.onBarrier,
		methodSync:     c.onSync,
		methodTransfer: c.onTransfer,
		methodOperate:  c.onOperate,
		methodGone:     c.onGone,
	} {
		c.cfg.Peer.HandleCall(method, func(ctx context.Context, from string, body json.RawMessage) (any, error) {
			if err := c.Err(); err != nil {
				return nil, outgoing(later(CodeClosed, "broker %s is not part of the cluster any more: %v", c.cfg.Self.Node, err))
			}
			answer, err := h(ctx, from, body)
			if err != nil {
				return nil, outgoing(err)
			}
			return answer, nil
		})
	}
}

// onBarrier says how far the catalog is, on the metadata leader.
func (c *Cluster) onBarrier(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
	if err := c.metadataReady(ctx); err != nil {
		return nil, err
	}
	index, _ := c.machine.progress()
	return barrierAnswer{Index: index}, nil
}

// Sync returns once this broker's catalog is as new as the metadata leader's was
// when Sync began.
func (c *Cluster) Sync(ctx context.Context) error {
	var a barrierAnswer
	switch leader, ok := c.metadataLeader(); {
	case !ok:
		return later(CodeNoLeader, "%s", c.noLeaderReason())
	case leader == c.cfg.Self.Node:
		return c.metadataReady(ctx)
	default:
		if err := incoming(c.cfg.Peer.Call(ctx, leader, methodBarrier, struct{}{}, &a)); err != nil {
			return err
		}
	}
	return c.awaitCatalog(ctx, a.Index)
}

// onTransfer hands over a group that this broker leads.
func (c *Cluster) onTransfer(ctx context.Context, from string, body json.RawMessage) (any, error) {
	var req transferRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, refuse(CodeInvalid, "transfer: %v", err)
	}
	return struct{}{}, c.handOverTo(ctx, req.Group, req.To, from)
}

func (c *Cluster) handOverTo(ctx context.Context, group uint32, to, asks string) error {
	g, here := c.Group(group)
	if !here || !g.State().Leading {
		return later(CodeNoLeader, "broker %s does not lead group %d", c.cfg.Self.Node, group)
	}
	if to == c.cfg.Self.Node {
		return nil
	}
	members, err := g.Members()
	if err != nil {
		return later(CodeBusy, "group %d: %v", group, err)
	}
	b, registered := c.State().Broker(to)
	var target quorum.Server
	for _, m := range members {
		if registered && m.Voter && m.Server == serverOf(b) {
			target = m.Server
		}
	}
	if target == (quorum.Server{}) {
		return refuse(CodeRefused, "broker %s is no voter of group %d", to, group)
	}
	if ok, lag := g.CaughtUp(target); !ok {
		return later(CodeBusy, "broker %s has not caught up with group %d: %d entries to go", to, group, lag)
	}
	c.cfg.Log.Info("handing over the leadership", "group", group, "to", to, "asked", asks)
	if err := g.Transfer(ctx, target); err != nil {
		return later(CodeBusy, "hand group %d over to %s: %v", group, to, err)
	}
	return nil
}

// onGone hears that this broker was removed. Whoever says so is a broker of the
// cluster; being told by mistake is told to a person by the end of this process.
func (c *Cluster) onGone(_ context.Context, _ string, body json.RawMessage) (any, error) {
	var req goneNotice
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, refuse(CodeInvalid, "gone: %v", err)
	}
	if req.Instance != c.cfg.Self.Instance || req.Cluster != c.cfg.Book.Cluster() {
		return nil, refuse(CodeInvalid, "that is not this broker")
	}
	c.fail(refuse(CodeRemoved, "broker %s was removed from cluster %s: to have it join again, start it with an empty data directory",
		c.cfg.Self, req.Cluster))
	return struct{}{}, nil
}

// call asks a broker, or this one itself.
func (c *Cluster) call(ctx context.Context, node, method string, req, answer any, here func(context.Context) error) error {
	if node == c.cfg.Self.Node {
		return here(ctx)
	}
	err := incoming(c.cfg.Peer.Call(ctx, node, method, req, answer))
	if _, ours := errors.AsType[*Error](err); err == nil || ours {
		return err
	}
	if maybeDone(err) {
		return later(CodeOutcomeUnknown, "broker %s has not answered: %v", node, err)
	}
	return later(CodeNoLeader, "broker %s cannot be reached: %v", node, err)
}
