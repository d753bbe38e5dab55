package server

import (
	"testing"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

func TestLookups(t *testing.T) {
	h := start(t, func(c *Config) { c.NodeID, c.Advertise = "b0", "broker.example:5000" })
	h.memory("s", 3, nil)
	h.dir.refused[streamName("damaged")] = &stream.Error{Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Message: "damaged"}
	k := h.dial().authed()
	const ns = "default"
	k.send(&wire.Topology{})
	k.want(&wire.TopologyView{Brokers: []wire.Broker{{NodeID: "b0", Addr: "broker.example:5000"}}})
	k.send(&wire.StreamShards{TenantID: testTenant, Namespace: ns, Stream: "s", RequestID: 1})
	k.want(&wire.StreamShardsView{Shards: 3, RequestID: 1})
	k.send(&wire.StreamShards{TenantID: testTenant, Namespace: ns, Stream: "none", RequestID: 2})
	k.want(&wire.StreamShardsView{RequestID: 2})
	k.send(&wire.ShardOwners{TenantID: testTenant, Namespace: ns, Name: "s", Kind: wire.OwnersOfStream, RequestID: 3})
	k.want(&wire.ShardOwnersView{Owners: []wire.ShardOwner{{}, {Shard: 1}, {Shard: 2}}, RequestID: 3})
	k.send(&wire.ShardOwners{TenantID: testTenant, Namespace: ns, Name: "none", Kind: wire.OwnersOfStream, RequestID: 4})
	k.want(&wire.ShardOwnersView{Owners: []wire.ShardOwner{}, RequestID: 4})
	k.send(&wire.ShardOwners{TenantID: testTenant, Namespace: ns, Name: "s", Kind: wire.OwnersOfCache, RequestID: 5})
	k.want(&wire.ShardOwnersView{Owners: []wire.ShardOwner{}, RequestID: 5})
	k.send(&wire.StreamShards{TenantID: "t2", Namespace: ns, Stream: "s", RequestID: 6})
	k.wantError(wire.CodeForbidden)
	k.send(&wire.ShardOwners{TenantID: testTenant, Namespace: ns, Name: "damaged", Kind: wire.OwnersOfStream, RequestID: 7})
	k.wantError(wire.CodeShardUnavailable)
	k.alive()
	k.fin()
	k.wantEnd()
}

func TestTopologyOfABrokerWithoutAnAddress(t *testing.T) {
	k := start(t, nil).dial().authed()
	k.send(&wire.Topology{})
	k.want(&wire.TopologyView{Brokers: []wire.Broker{}})
}

func TestUnservedRequests(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	raw := func(json string) []byte { return append(wire.AppendHeader(nil, 0, len(json)), json...) }

	k := c.authed()
	k.write(raw(`{"type":"group_poll","request_id":7,"tenant_id":"t1"}`))
	k.want(&wire.Unsupported{RequestType: "group_poll", RequestID: new(uint64(7))})
	k.send(&wire.Extension{Name: "x-test", RequestID: new(uint64(8))})
	k.want(&wire.Unsupported{RequestType: "extension", Extension: "x-test", RequestID: new(uint64(8))})
	k.write(raw(`{"type":"cache_get","key":"k"}`))
	k.want(&wire.Unsupported{RequestType: "cache_get"})
	k.alive()

	// To a client that cannot read that an unknown request is the end, but for the
	// cache requests that it sends to any broker.
	old := c.authedAs("good", allFlags, allFeatures&^wire.FeatureUnsupported)
	old.write(raw(`{"type":"cache_get","key":"k"}`))
	old.wantError(wire.CodeInvalidRequest)
	old.alive()
	old.write(raw(`{"type":"group_poll","request_id":7}`))
	old.wantError(wire.CodeInvalidRequest)
	old.wantEnd()
}
