package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"felix.dev/felix/broker/wire"
)

// errorOf makes an *Error of the parts of an error message. Without a class the code's own is taken; without a code
// everything may be retried, except for what is forbidden, which is known by its text.
func errorOf(message, code, retry string, detail *wire.ErrorDetail) *Error {
	e := &Error{Message: message}
	known := false
	if code != "" {
		if e.Code, known = wire.ParseCode(code); !known {
			e.Message = message + " [" + code + "]"
		}
	}
	switch {
	case retry != "":
		e.Retry = wire.ParseRetry(retry)
	case known:
		e.Retry = e.Code.DefaultRetry()
	default:
		e.Retry = retryByText(message)
	}
	if detail != nil {
		e.Reason = detail.Reason
		e.RetryAfter = millis(detail.RetryAfterMS)
	}
	return e
}

// errorOfAck makes an *Error of a failed ack.
func errorOfAck(a *wire.Ack) *Error {
	e := &Error{Message: a.Message}
	if a.HasCode {
		e.Code, e.Retry = a.Code, a.Retry
	} else {
		e.Retry = retryByText(a.Message)
	}
	if a.HasDetail {
		e.Reason = a.Reason
		e.RetryAfter = millis(a.RetryAfterMS)
	}
	return e
}

// millis reads a wait from the wire. More than an hour is not a suggestion but a mistake.
func millis(ms uint64) time.Duration {
	return min(time.Duration(min(ms, uint64(time.Hour/time.Millisecond)))*time.Millisecond, time.Hour)
}

// Shards asks how many shards a stream has and how its keys are spread over them.
func (c *Client) Shards(ctx context.Context, s Stream) (Shards, error) {
	if err := s.validate(); err != nil {
		return Shards{}, err
	}
	cn, err := c.pool.get(ctx, "", false)
	if err != nil {
		return Shards{}, err
	}
	if !cn.features.Has(wire.FeatureStreamShards) {
		return Shards{}, &UnsupportedError{What: "stream_shards"}
	}
	m, err := cn.ask(ctx, &wire.StreamShards{TenantID: c.cfg.Tenant, Namespace: s.Namespace, Stream: s.Name, RequestID: 1})
	if err != nil {
		return Shards{}, err
	}
	view, ok := m.(*wire.StreamShardsView)
	if !ok {
		return Shards{}, unexpected("stream_shards", m)
	}
	if view.Shards == 0 {
		return Shards{}, &Error{
			Code: wire.CodeNotFound, Retry: wire.RetryAfter,
			Message: "the broker does not know stream " + s.String(),
		}
	}
	return Shards{Count: view.Shards, Routing: view.Routing}, nil
}

// Topology asks a cluster for its brokers. A broker that is not in a cluster gives an *UnsupportedError.
func (c *Client) Topology(ctx context.Context) ([]Broker, error) {
	cn, err := c.pool.get(ctx, "", false)
	if err != nil {
		return nil, err
	}
	return cn.topology(ctx)
}

func (cn *conn) topology(ctx context.Context) ([]Broker, error) {
	if !cn.features.Has(wire.FeatureTopology) {
		return nil, &UnsupportedError{What: "topology"}
	}
	m, err := cn.ask(ctx, &wire.Topology{})
	if err != nil {
		return nil, err
	}
	view, ok := m.(*wire.TopologyView)
	if !ok {
		return nil, unexpected("topology", m)
	}
	brokers := make([]Broker, len(view.Brokers))
	for i, b := range view.Brokers {
		brokers[i] = Broker{NodeID: b.NodeID, Addr: b.Addr}
	}
	return brokers, nil
}

// topologyAge is how old the list of a cluster's brokers becomes: brokers are added while clients are connected, and those
// that were there before may go. Up to half of it is added at random.
const topologyAge = time.Minute

// followTopology adds the brokers of the cluster behind a connection to those that are tried when it is lost, as long as it
// lives.
func (c *Client) followTopology(cn *conn) {
	ctx := cn.q.Context()
	for {
		brokers, err := cn.topology(ctx)
		switch {
		case err == nil:
			c.pool.learn(brokers)
		case !cn.alive():
			return
		default:
			c.log.Warn("asking for the topology failed; only the known brokers are used", "broker", cn.addr, "error", err)
		}
		again := time.NewTimer(topologyAge + rand.N(topologyAge/2)) //nolint:gosec // so that clients do not ask all at once
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// ShardOwners asks which brokers lead the shards of a stream.
func (c *Client) ShardOwners(ctx context.Context, s Stream) ([]ShardOwner, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	cn, err := c.pool.get(ctx, "", false)
	if err != nil {
		return nil, err
	}
	if !cn.features.Has(wire.FeatureShardOwners) {
		return nil, &UnsupportedError{What: "shard_owners"}
	}
	m, err := cn.ask(ctx, &wire.ShardOwners{
		TenantID: c.cfg.Tenant, Namespace: s.Namespace, Name: s.Name, Kind: wire.OwnersOfStream, RequestID: 1,
	})
	if err != nil {
		return nil, err
	}
	view, ok := m.(*wire.ShardOwnersView)
	if !ok {
		return nil, unexpected("shard_owners", m)
	}
	owners := make([]ShardOwner, len(view.Owners))
	for i, o := range view.Owners {
		owners[i] = ShardOwner{Shard: o.Shard, NodeID: o.NodeID, Addr: o.Addr, Generation: o.Generation, Unavailable: o.Unavailable}
	}
	return owners, nil
}

func unexpected(request string, m wire.Message) error {
	return &ProtocolError{Where: whereControl, Err: fmt.Errorf("%s was answered with %q", request, m.MessageType())}
}
