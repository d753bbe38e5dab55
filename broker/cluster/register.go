package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"felix.dev/felix/broker/peer"
)

// register has the metadata leader note where this broker is, and that it is this
// instance of it. It asks whoever may know the leader until somebody does, and
// returns the index from which on the catalog has the broker.
func (c *Cluster) register(ctx context.Context) (uint64, error) {
	began := time.Now()
	said := began
	for {
		index, troubles, err := c.registerOnce(ctx)
		// Somebody of the list is of another cluster. That ends it if the broker's own
		// cluster does not turn up either.
		early := errors.Is(err, ErrForeign) && time.Since(began) < c.cfg.Timings.Propose
		if err == nil || final(err) && !early {
			return index, err
		}
		if time.Since(said) > sayAfter {
			said = time.Now()
			c.cfg.Log.Info("nobody lets this broker in yet", "tried", strings.Join(troubles, "; "))
		}
		if err := c.pause(ctx); err != nil {
			return 0, fmt.Errorf("nobody lets this broker in: %s: %w", strings.Join(troubles, "; "), err)
		}
	}
}

// registerOnce asks everybody once.
func (c *Cluster) registerOnce(ctx context.Context) (index uint64, troubles []string, err error) {
	req := joinRequest{Protocol: protocol, Broker: c.cfg.Broker, Since: c.since, Cluster: c.cfg.Book.Cluster()}
	try := func(whom string, ask func(ctx context.Context, answer *joinAnswer) error) error {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Change)
		defer cancel()
		var answer joinAnswer
		err := ask(ctx, &answer)
		if err == nil {
			index, err = c.admitted(answer)
		}
		if err != nil {
			troubles = append(troubles, fmt.Sprintf("%s: %v", whom, err))
		}
		return err
	}
	var foreign error
	err = later(CodeNoLeader, "there is nobody to ask")
	if meta := c.meta.Load(); meta != nil && meta.State().Leading {
		if err = try("this broker", func(ctx context.Context, a *joinAnswer) (err error) {
			*a, err = c.admit(ctx, req)
			return err
		}); err == nil || final(err) {
			return index, troubles, err
		}
	}
	for _, node := range c.likelyFirst(c.cfg.Book.nodes()) {
		err = try(node, func(ctx context.Context, a *joinAnswer) error {
			return incoming(c.cfg.Peer.Call(ctx, node, methodJoin, req, a))
		})
		if err == nil || final(err) {
			return index, troubles, err
		}
	}
	for _, addr := range c.cfg.Join {
		c.greet(ctx, addr)
		err = try(addr, func(ctx context.Context, a *joinAnswer) error {
			return foreignSeed(addr, incoming(c.cfg.Peer.CallAddr(ctx, addr, methodJoin, req, a)))
		})
		switch {
		case errors.Is(err, ErrForeign):
			foreign = err // another one of the list may be right
		case err == nil || final(err):
			return index, troubles, err
		}
	}
	if foreign != nil {
		err = foreign
	}
	return 0, troubles, err
}

// greet tells whoever is at an address where this broker is, and hears the same:
// members of one cluster that have all changed their addresses find each other so.
func (c *Cluster) greet(ctx context.Context, addr string) {
	if c.cfg.Book.Cluster() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Call)
	defer cancel()
	var answer report
	if c.cfg.Peer.CallAddr(ctx, addr, methodExchange, c.report(), &answer) == nil { // what is wrong is told by the join that follows
		c.around.hear(&answer)
	}
}

// likelyFirst are the other nodes, the metadata leader first if one is known, and
// those last that have not answered.
func (c *Cluster) likelyFirst(nodes []string) []string {
	leader, _ := c.metadataLeader()
	nodes = slices.DeleteFunc(nodes, func(n string) bool { return n == c.cfg.Self.Node })
	rank := func(node string) int { return boolRank(node != leader) + 2*boolRank(!c.around.answers(node)) }
	slices.SortStableFunc(nodes, func(a, b string) int { return rank(a) - rank(b) })
	return nodes
}

// foreignSeed says that an address that was given to this broker is one of another
// cluster. Where a peer was once, another cluster may well be: that is no error.
func foreignSeed(addr string, err error) error {
	refused, ok := errors.AsType[*peer.RefusedError](err)
	if !ok || refused.Reason != peer.RefusedCluster {
		return err
	}
	return refuse(CodeForeign, "the broker at %s belongs to cluster %s, and the data of this one to another: "+
		"correct the addresses to join, or give this broker an empty data directory", addr, refused.Cluster)
}

// admitted takes the answer of whoever let this broker in.
func (c *Cluster) admitted(a joinAnswer) (uint64, error) {
	book := c.cfg.Book
	if have := book.Cluster(); have != "" && have != a.Cluster {
		return 0, refuse(CodeForeign, "the data of this broker is of cluster %s, and the brokers that it is to join belong to %s: "+
			"correct the addresses to join, or give this broker an empty data directory", have, a.Cluster)
	}
	if book.Cluster() == "" {
		if err := book.enter(a.Cluster, c.cfg.Self, false); err != nil {
			return 0, err
		}
	}
	if err := book.record(a.Brokers); err != nil {
		return 0, err
	}
	c.around.follow()
	return a.Index, nil
}
