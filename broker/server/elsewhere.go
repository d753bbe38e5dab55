package server

import (
	"cmp"
	"fmt"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// sendElsewhere answers a request for a shard that another broker serves, or nobody.
// Only somebody who is known, with an address, is named: a client goes there and does
// not come back.
func (s *session) sendElsewhere(e *stream.Elsewhere) {
	switch {
	case e.Addr == "":
		s.refuseRequest(&stream.Error{
			Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: reasonOf(e),
			Message: "no broker serves the shard at the moment",
		})
	case s.offer.Features.Has(wire.FeatureRedirect):
		s.answer(&wire.NotLeader{NodeID: e.NodeID, Addr: e.Addr, Generation: e.Generation})
	default:
		s.refuseRequest(&stream.Error{
			Code: wire.CodeNotLeader, Retry: wire.RetryRedirect,
			Message: fmt.Sprintf("the shard is served by broker %s at %s", e.NodeID, e.Addr),
		})
	}
}

// gone says where a shard is that would not take a subscription because it does not
// serve any more. Where a broker has not heard of that, it is on its way.
func gone(p stream.Place) *stream.Elsewhere {
	if _, e := p.Here(); e != nil {
		return e
	}
	return &stream.Elsewhere{Reason: stream.ReasonMoving}
}

func reasonOf(e *stream.Elsewhere) string { return cmp.Or(e.Reason, stream.ReasonNotReady) }

// ownerOf lists shard i, which is in place p. A broker outside of a cluster names no
// owner: there is only itself.
func (s *Server) ownerOf(i int, p stream.Place) wire.ShardOwner {
	o := wire.ShardOwner{Shard: uint32(i)}
	if !s.cfg.Cluster {
		return o
	}
	here, e := p.Here()
	switch {
	case here != nil:
		o.NodeID, o.Addr, o.Generation = s.cfg.NodeID, s.cfg.Advertise, p.Generation()
	case e.Addr != "":
		o.NodeID, o.Addr, o.Generation = e.NodeID, e.Addr, e.Generation
	default:
		o.Generation, o.Unavailable = e.Generation, reasonOf(e)
	}
	return o
}
