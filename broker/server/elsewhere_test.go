package server

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// fakePlace is a shard somewhere. The zero value is nowhere and keeps what is published.
type fakePlace struct {
	mu         sync.Mutex
	here       []*stream.Shard // what Here finds, one call after the other; then the last one
	elsewhere  stream.Elsewhere
	generation uint64
	owner      *stream.Owner // answers publishes at once, if set
	err        error         // likewise
	kept       []*stream.Publish
}

// refuse answers publishes with err from now on.
func (p *fakePlace) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *fakePlace) Publish(b *stream.Publish) {
	p.mu.Lock()
	owner, err := p.owner, p.err
	if owner == nil && err == nil {
		p.kept = append(p.kept, b)
	}
	p.mu.Unlock()
	switch {
	case err != nil:
		b.Done(stream.Result{Err: err})
	case owner != nil:
		b.Done(stream.Result{Offset: 7, Owner: owner})
	}
}

func (p *fakePlace) Here() (*stream.Shard, *stream.Elsewhere) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s *stream.Shard
	if len(p.here) > 0 {
		s = p.here[0]
	}
	if len(p.here) > 1 {
		p.here = p.here[1:]
	}
	if s != nil {
		return s, nil
	}
	e := p.elsewhere
	return nil, &e
}

func (p *fakePlace) Generation() uint64 { return p.generation }

// answer answers everything that was kept.
func (p *fakePlace) answer(r stream.Result) {
	p.mu.Lock()
	kept := p.kept
	p.kept = nil
	p.mu.Unlock()
	for _, b := range kept {
		b.Done(r)
	}
}

// places makes a stream of the given places.
func (h *harness) places(name string, all ...stream.Place) {
	h.t.Helper()
	h.dir.mu.Lock()
	h.dir.streams[streamName(name)] = stream.NewStream(streamName(name), "1", stream.Quorum, wire.RoutingModulo, all)
	h.dir.mu.Unlock()
	h.dir.generation.Add(1)
}

func inCluster(c *Config) { c.Cluster, c.NodeID, c.Advertise = true, "b0", "b0.example:5000" }

// What a broker of a cluster says it is (wire protocol, section 11.8).
func TestClusterIsAdvertised(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		k := start(t, func(c *Config) { c.Cluster = cluster }).dial().open()
		flags := allFlags
		k.send(&wire.Auth{TenantID: testTenant, Token: "good", ClientFlags: &flags, ClientFeatures: allFeatures})
		want := &wire.AuthOK{ServerFlags: 7807 | wire.IdempotentFlags, ServerFeatures: wire.ClusterFeatures | wire.IdempotentFeatures}
		if cluster {
			want.ServerFlags = 7935 | wire.IdempotentFlags
		}
		k.want(want)
	}
}

func TestTopologyOfACluster(t *testing.T) {
	h := start(t, inCluster)
	h.dir.brokers = []wire.Broker{{NodeID: "b0", Addr: "b0.example:5000"}, {NodeID: "b1", Addr: "b1.example:5000"}, {NodeID: "b2"}}
	k := h.dial().authed()
	k.send(&wire.Topology{})
	k.want(&wire.TopologyView{Brokers: h.dir.brokers[:2]})
	if err := h.server.Drain(t.Context()); err != nil { // who leaves sends nobody to itself
		t.Fatal(err)
	}
	k.send(&wire.Topology{})
	k.want(&wire.TopologyView{Brokers: h.dir.brokers[1:2]})
}

// A subscribe that reaches a broker which does not serve the shard is told who does, if
// somebody is known, in the way that its client reads.
func TestSubscribeElsewhere(t *testing.T) {
	h := start(t, inCluster)
	known := &fakePlace{elsewhere: stream.Elsewhere{NodeID: "b1", Addr: "b1.example:5000", Generation: 3}}
	moving := &fakePlace{elsewhere: stream.Elsewhere{Reason: stream.ReasonMoving}}
	unknown := &fakePlace{elsewhere: stream.Elsewhere{NodeID: "b1"}} // a name without an address is of no use
	h.places("s", known, moving, unknown)
	c := h.dial()
	subscribe := func(shard uint32, features wire.Features) *control {
		k := c.authedAs("good", allFlags, features)
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s", Shard: &shard})
		return k
	}
	subscribe(0, allFeatures).want(&wire.NotLeader{NodeID: "b1", Addr: "b1.example:5000", Generation: 3})
	e := subscribe(0, allFeatures&^wire.FeatureRedirect).wantError(wire.CodeNotLeader)
	if e.Retry != "redirect" {
		t.Errorf("got %+v", e)
	}
	for shard, reason := range map[uint32]string{1: "moving", 2: "not_ready"} {
		k := subscribe(shard, allFeatures)
		want := &wire.ErrorDetail{Reason: reason}
		if e := k.wantError(wire.CodeShardUnavailable); e.Retry != "retry" || !cmp.Equal(want, e.Detail) {
			t.Errorf("shard %d: got %+v", shard, e)
		}
		k.alive()
	}
}

// B19: the shard stops being served between the look at its place and the registration.
func TestSubscribeAtAShardThatHasJustMoved(t *testing.T) {
	h := start(t, inCluster)
	shard := shardsOf(h.memory("old", 1, nil))[0]
	if err := shard.Close(t.Context(), stream.EndMoved); err != nil {
		t.Fatal(err)
	}
	h.places("heard", &fakePlace{
		here: []*stream.Shard{shard, nil}, elsewhere: stream.Elsewhere{NodeID: "b1", Addr: "b1.example:5000", Generation: 4},
	})
	h.places("unheard", &fakePlace{here: []*stream.Shard{shard}})
	c := h.dial()
	k := c.authed()
	begin := time.Now()
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "heard"})
	k.want(&wire.NotLeader{NodeID: "b1", Addr: "b1.example:5000", Generation: 4})
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "unheard"})
	if e := k.wantError(wire.CodeShardUnavailable); e.Detail == nil || e.Detail.Reason != "moving" {
		t.Errorf("got %+v", e)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("told after %s", took)
	}
	if n := h.server.open()[0].subscriptionCount(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

func TestShardOwners(t *testing.T) {
	h := start(t, inCluster)
	shard := shardsOf(h.memory("m", 1, nil))[0]
	h.places("s",
		&fakePlace{here: []*stream.Shard{shard}, generation: 5},
		&fakePlace{elsewhere: stream.Elsewhere{NodeID: "b1", Addr: "b1.example:5000", Generation: 3}},
		&fakePlace{elsewhere: stream.Elsewhere{Reason: stream.ReasonOwnerUnavailable, Generation: 2}},
	)
	k := h.dial().authed()
	k.send(&wire.ShardOwners{TenantID: testTenant, Namespace: "default", Name: "s", Kind: wire.OwnersOfStream, RequestID: 1})
	k.want(&wire.ShardOwnersView{RequestID: 1, Owners: []wire.ShardOwner{
		{Shard: 0, NodeID: "b0", Addr: "b0.example:5000", Generation: 5},
		{Shard: 1, NodeID: "b1", Addr: "b1.example:5000", Generation: 3},
		{Shard: 2, Unavailable: "owner_unavailable", Generation: 2},
	}})
	k.send(&wire.StreamShards{TenantID: testTenant, Namespace: "default", Stream: "s", RequestID: 2})
	k.want(&wire.StreamShardsView{Shards: 3, RequestID: 2})
}

// An ack says who has written the batch, if that was another broker and the client
// reads it.
func TestAckNamesTheOwner(t *testing.T) {
	h := start(t, inCluster)
	h.places("s", &fakePlace{owner: &stream.Owner{NodeID: "b1", Addr: "b1.example:5000", Generation: 3}})
	h.memory("own", 1, nil)
	c := h.dial()
	k := c.authed()
	want := wire.Ack{OK: true, RequestID: 1, HasOffset: true, Offset: 7, HasOwner: true, OwnerNode: "b1", OwnerAddr: "b1.example:5000", Generation: 3}
	k.publish(publish(1, "s", "x"))
	if d := cmp.Diff(want, k.ack()); d != "" {
		t.Errorf("forwarded (-want +got):\n%s", d)
	}
	k.publish(publish(2, "own", "x"))
	if a := k.ack(); !a.OK || a.HasOwner {
		t.Errorf("not forwarded: %+v", a)
	}
	old := c.authedAs("good", allFlags&^wire.FlagAckOwner, allFeatures)
	old.publish(publish(3, "s", "x"))
	if a := old.ack(); !a.OK || a.HasOwner {
		t.Errorf("not offered: %+v", a)
	}
}

// B11, B38: a shard elsewhere that does not answer has its share of the stream that it is
// published on and no more: acks of others keep coming on the same stream, and once its
// share is full it is refused without further waiting.
func TestStuckPlaceLeavesItsStreamToOthers(t *testing.T) {
	const unanswered = 64
	h := start(t, func(c *Config) {
		inCluster(c)
		c.MaxUnanswered, c.PublishIngressWait = unanswered, 50*time.Millisecond
	})
	stuck, healthy := &fakePlace{}, &fakePlace{owner: &stream.Owner{NodeID: "b1"}}
	h.places("stuck", stuck)
	h.places("healthy", healthy)
	k := h.dial().authed()
	const sent = 3 * unanswered
	for i := range uint64(sent) {
		k.publish(publish(i, "stuck", "x"))
		k.publish(publish(1000+i, "healthy", "x"))
	}
	refused := 0
	for range 2*sent - unanswered/shardShare {
		switch a := k.ack(); {
		case a.RequestID >= 1000 && a.OK:
		case a.RequestID < 1000 && a.Code == wire.CodeOverloaded:
			refused++
		default:
			t.Fatalf("got %+v", a)
		}
	}
	if refused != sent-unanswered/shardShare {
		t.Errorf("%d were refused of %d", refused, sent)
	}
	stuck.answer(stream.Result{Offset: 1})
	for range unanswered / shardShare {
		if a := k.ack(); !a.OK || a.RequestID >= 1000 {
			t.Fatalf("after the release: %+v", a)
		}
	}
}

// B39: what is refused, whether for good or because nobody serves the shard, does not
// fail what comes after it on the same stream.
func TestRefusedPublishLeavesTheNextAlone(t *testing.T) {
	h := start(t, inCluster)
	nowhere := &fakePlace{}
	h.places("nowhere", nowhere)
	h.memory("good", 1, nil)
	k := h.dial().authed()
	k.publish(publish(1, "none", "x"))
	if a := k.ack(); a.OK || a.Code != wire.CodeNotFound {
		t.Fatalf("got %+v", a)
	}
	k.publish(publish(2, "nowhere", "x"))
	eventually(t, "it is there", func() bool {
		nowhere.mu.Lock()
		defer nowhere.mu.Unlock()
		return len(nowhere.kept) == 1
	})
	nowhere.answer(stream.Result{Err: &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: stream.ReasonNotReady, Message: "nobody",
	}})
	if a := k.ack(); a.OK || a.Code != wire.CodeShardUnavailable || a.Reason != "not_ready" || a.Retry != wire.RetryNow {
		t.Fatalf("got %+v", a)
	}
	for _, code := range []wire.Code{wire.CodeQuorumTimeout, wire.CodeLeadershipLost, wire.CodeUnacknowledged} {
		nowhere.refuse(&stream.Error{Code: code, Retry: code.DefaultRetry(), Message: "lost"})
		k.publish(publish(4, "nowhere", "x"))
		if a := k.ack(); a.OK || a.Code != code || a.Retry != wire.RetryOutcomeUnknown {
			t.Fatalf("got %+v", a)
		}
		eventually(t, "it is counted", func() bool {
			return testutil.ToFloat64(h.server.m.Publish.Requests.With(metrics.PublishResult(code.String()))) == 1
		})
	}
	k.publish(publish(3, "good", "x"))
	if a := k.ack(); !a.OK || a.RequestID != 3 {
		t.Fatalf("got %+v", a)
	}
}

// B11 beyond one connection: many of them, all stuck at one shard, leave half of the
// process's room to the others.
func TestStuckPlaceLeavesTheProcessToOthers(t *testing.T) {
	h := start(t, func(c *Config) {
		inCluster(c)
		c.IngressBytes, c.ConnectionIngressBytes, c.ShardIngressBytes = 512<<10, 128<<10, 64<<10
		c.PublishIngressWait = 50 * time.Millisecond
	})
	stuck := &fakePlace{}
	h.places("stuck", stuck)
	h.memory("healthy", 1, nil)
	payload := strings.Repeat("x", 30<<10)
	var refused int
	for range 10 {
		k := h.dial().authed()
		for i := range uint64(4) {
			k.publish(publish(i, "stuck", payload))
		}
		for range 2 { // the third and the fourth, or all
			if a := k.ack(); a.Code != wire.CodeOverloaded {
				t.Fatalf("got %+v", a)
			}
			refused++
		}
	}
	if held := h.server.Stats().IngressBytes; held > 256<<10 {
		t.Errorf("%d bytes are held", held)
	}
	k := h.dial().authed()
	for i := range uint64(20) {
		k.publish(publish(i, "healthy", payload))
		if a := k.ack(); !a.OK {
			t.Fatalf("got %+v", a)
		}
	}
	stuck.answer(stream.Result{})
}
