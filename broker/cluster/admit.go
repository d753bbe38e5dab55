package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/quorum"
)

// onHello says who this broker is, whether it belongs to a cluster or not.
func (c *Cluster) onHello(context.Context, string, json.RawMessage) (any, error) {
	cluster := c.cfg.Book.Cluster()
	return helloAnswer{
		Node: c.cfg.Self.Node, Instance: c.cfg.Self.Instance, Cluster: cluster, Founds: c.cfg.Found && cluster == "",
	}, nil
}

// onJoin registers a broker, or passes it on to the metadata leader.
func (c *Cluster) onJoin(ctx context.Context, from string, body json.RawMessage) (any, error) {
	var req joinRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, refuse(CodeInvalid, "join: %v", err)
	}
	if !req.Passed && req.Broker.NodeID != from {
		return nil, refuse(CodeInvalid, "join: %s registers as %s", from, req.Broker.NodeID)
	}
	meta := c.meta.Load()
	if meta == nil {
		return nil, later(CodeNoLeader, "broker %s belongs to no cluster yet", c.cfg.Self.Node)
	}
	// Whoever else is asked to reach the broker has to know where it is before the
	// catalog says so.
	if b, ok := c.State().Broker(from); !req.Passed && ok && b.Instance == req.Broker.Instance {
		c.cfg.Book.hear(map[string]heardOf{from: {position{Instance: req.Broker.Instance, Peer: req.Broker.Peer}, req.Since}})
		c.around.follow()
	}
	if meta.State().Leading {
		return c.admit(ctx, req)
	}
	leader, ok := c.metadataLeader()
	if !ok || req.Passed || leader == c.cfg.Self.Node {
		return nil, later(CodeNoLeader, "%s", c.noLeaderReason())
	}
	req.Passed = true
	var answer joinAnswer
	err := c.cfg.Peer.Call(ctx, leader, methodJoin, req, &answer)
	return answer, incoming(err)
}

// admit registers a broker, on the metadata leader.
//
// A broker that has data of this cluster and is not registered was removed. One
// that has none, under a node id that is registered, has lost its volume, unless
// the one that is registered is alive.
func (c *Cluster) admit(ctx context.Context, req joinRequest) (joinAnswer, error) {
	if err := c.metadataReady(ctx); err != nil {
		return joinAnswer{}, err
	}
	st := c.State()
	self := serverOf(req.Broker)
	have, known := st.Broker(self.Node)
	switch {
	case req.Protocol != protocol:
		return joinAnswer{}, refuse(CodeVersion, "broker %s speaks version %d with its peers, and this cluster version %d", self.Node, req.Protocol, protocol)
	case req.Cluster != "" && req.Cluster != st.Cluster():
		return joinAnswer{}, refuse(CodeForeign, "the data of broker %s is of cluster %s, and this is cluster %s: correct the addresses to join, "+
			"or give the broker an empty data directory", self, req.Cluster, st.Cluster())
	case st.WasRemoved(self.Node, self.Instance), req.Cluster != "" && (!known || have.Instance != self.Instance):
		return joinAnswer{}, removedError(st, self)
	}
	cmd := catalog.RegisterBroker{Broker: req.Broker}
	if known && have.Instance != self.Instance {
		if err := c.mayReplace(ctx, have, req.Broker); err != nil {
			return joinAnswer{}, err
		}
		cmd.Replaces = have.Instance
	}
	r, err := c.Propose(ctx, cmd)
	switch {
	case err != nil:
		return joinAnswer{}, err
	case errors.Is(r.Err, catalog.ErrRemoved):
		return joinAnswer{}, removedError(c.State(), self)
	case errors.Is(r.Err, catalog.ErrImporting), errors.Is(r.Err, catalog.ErrNodeTaken):
		return joinAnswer{}, later(CodeBusy, "%v", r.Err) // it looks different in a moment
	case r.Err != nil:
		return joinAnswer{}, refuse(CodeRefused, "%v", r.Err)
	}
	if r.Changed {
		c.cfg.Log.Info("registered a broker", "broker", self.String(), "address", req.Broker.Peer, "replaces", cmd.Replaces)
	}
	index, _ := c.machine.progress()
	return joinAnswer{Cluster: st.Cluster(), Index: index, Brokers: positions(c.State())}, nil
}

// mayReplace refuses a broker whose node id is that of one that lives.
func (c *Cluster) mayReplace(ctx context.Context, have, comes catalog.Broker) error {
	if have.NodeID == c.cfg.Self.Node {
		return takenError(have, comes)
	}
	a, err := c.hello(ctx, have.Peer)
	if err == nil && a.Node == have.NodeID && a.Instance == have.Instance {
		return takenError(have, comes)
	}
	return nil // nobody is there, or somebody else
}

func takenError(have, comes catalog.Broker) error {
	return refuse(CodeTaken, "broker %s is running at %s with another data directory (%s): give the one at %s another node id, or stop the other first",
		have.NodeID, have.Peer, have.Instance, comes.Peer)
}

// metadataReady returns once this broker, leading the metadata group, has the
// newest catalog.
func (c *Cluster) metadataReady(ctx context.Context) error {
	meta := c.meta.Load()
	if meta == nil {
		return later(CodeNoLeader, "broker %s has not joined yet", c.cfg.Self.Node)
	}
	st := meta.State()
	if !st.Leading {
		return later(CodeNoLeader, "%s", c.noLeaderReason())
	}
	if c.readyTerm.Load() == st.Term {
		return nil
	}
	if err := meta.Ready(ctx); err != nil {
		return later(CodeNoLeader, "broker %s is about to lead the metadata group: %v", c.cfg.Self.Node, err)
	}
	c.readyTerm.Store(st.Term)
	return nil
}

// noLeaderReason says why there is no metadata leader, as far as is known here;
// nothing if there is one.
func (c *Cluster) noLeaderReason() string {
	meta := c.meta.Load()
	if meta == nil {
		return "this broker has not joined the cluster yet"
	}
	if st := meta.State(); st.Leading || st.LeaderKnown && c.around.answers(st.Leader.Node) {
		return ""
	}
	return describeMinority(c.State(), c.cfg.Self.Node, c.around.words())
}

// describeMinority says which voters of the metadata group are missing.
func describeMinority(st *catalog.State, self string, words map[string]word) string {
	g, _ := st.Group(catalog.MetadataGroup)
	var missing []string
	voters := 0
	for _, m := range g.Members {
		if !m.Voter {
			continue
		}
		voters++
		if w := words[m.Node]; m.Node != self && (w.failed != "" || w.at.IsZero() || w.report.Instance != m.Instance) {
			missing = append(missing, m.Node)
		}
	}
	need := voters/2 + 1
	if there := voters - len(missing); there < need {
		return fmt.Sprintf("the metadata group has no majority as seen from broker %s: %d of its %d voters are there and %d are needed, missing: %s",
			self, there, voters, need, strings.Join(missing, ", "))
	}
	return "the metadata group is electing a leader"
}

func serverOf(b catalog.Broker) quorum.Server {
	return quorum.Server{Node: b.NodeID, Instance: b.Instance}
}
