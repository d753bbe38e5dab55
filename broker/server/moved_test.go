package server

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// fakeReplica is a group of one: what is proposed is applied at once.
type fakeReplica struct {
	mu   sync.Mutex
	next uint64
}

func (r *fakeReplica) Propose(s *stream.Shard, p *stream.Publish) {
	var res [1]stream.Result
	r.mu.Lock()
	err := s.Apply(1, 0, []stream.Batch{{Records: p.Records}}, res[:])
	r.mu.Unlock()
	if err != nil {
		res[0].Err = err
	}
	p.Done(res[0])
}

func (r *fakeReplica) Append(records []seglog.Record) error {
	for _, v := range records {
		r.next += uint64(v.Count)
	}
	return nil
}

func (r *fakeReplica) Reader(uint64) stream.Reader { return nil }
func (r *fakeReplica) Next() uint64                { return r.next }
func (r *fakeReplica) Oldest() uint64              { return 0 }
func (r *fakeReplica) Stats() (s seglog.Stats)     { return s }
func (r *fakeReplica) Close() error                { return nil }

// replica makes a stream of one shard that leads.
func (h *harness) replica(name string) *stream.Shard {
	h.t.Helper()
	r := &fakeReplica{}
	s, err := stream.OpenReplica(stream.Config{Name: streamName(name)}, stream.Replicated{Proposer: r, Log: r})
	if err != nil {
		h.t.Fatal(err)
	}
	s.Lead()
	h.places(name, s)
	return s
}

// B19 and section 11.3: a shard that is handed over gives its readers what is committed,
// then says where it went, to those who read that; the rest are to come back by
// themselves. One that is lost says nothing.
func TestShardMoved(t *testing.T) {
	for name, v := range map[string]struct {
		features wire.Features
		reason   stream.EndReason
		to       *stream.Moved
		want     *wire.ShardMoved // nil: a reset
	}{
		"handed over": {
			allFeatures, stream.EndMoved, &stream.Moved{NodeID: "b1", Addr: "b1.example:5000", Generation: 2},
			&wire.ShardMoved{ResumeFrom: new(uint64(3)), NodeID: "b1", Addr: "b1.example:5000", Generation: 2},
		},
		"not offered":     {allFeatures &^ wire.FeatureShardMoved, stream.EndMoved, &stream.Moved{NodeID: "b1", Addr: "b1:1"}, nil},
		"nobody is known": {allFeatures, stream.EndMoved, nil, nil},
		"deposed":         {allFeatures, stream.EndDeposed, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, inCluster)
			shard := h.replica("s")
			c := h.dial()
			k := c.authedAs("good", allFlags, v.features)
			k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
			sub, ok := k.message().(*wire.Subscribed)
			if !ok {
				t.Fatal("not subscribed")
			}
			events := c.acceptEvents()
			c.authed().fill("s", 0, 3)
			if d := cmp.Diff(filled(0, 3), events.read(3)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			shard.Unlead(v.reason, v.to)
			label := metrics.EndReason(v.reason.String())
			defer eventually(t, "it is counted", func() bool {
				return testutil.ToFloat64(h.server.m.Subscriptions.Ended.With(label)) == 1
			})
			if v.want == nil {
				if code := events.resetCode(); code != 1 {
					t.Errorf("reset %d", code)
				}
				return
			}
			want := *v.want
			want.SubscriptionID = sub.SubscriptionID
			head, b := events.frame()
			got, err := wire.DecodeMessage(b)
			if d := cmp.Diff(wire.Message(&want), got); head.Flags != 0 || err != nil || d != "" {
				t.Errorf("flags %d, %v (-want +got):\n%s", head.Flags, err, d)
			}
			if _, _, err := events.next(); !errors.Is(err, io.EOF) {
				t.Errorf("ended with %v, want a FIN", err)
			}
			// Who comes now is told that it is on its way, until the broker hears where to.
			k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
			if e := k.wantError(wire.CodeShardUnavailable); e.Detail == nil || e.Detail.Reason != "moving" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// B19: a leader that steps down while it is subscribed at. Whatever comes first: a typed
// refusal, or an event stream that ends; never a subscription that nobody serves.
func TestSubscribeWhileTheLeaderStepsDown(t *testing.T) {
	h := start(t, inCluster)
	shard := h.replica("s")
	c := h.dial()
	k := c.authed()
	served, refused := 0, 0
	for i := range 100 {
		shard.Lead()
		k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
		if i%3 == 0 {
			time.Sleep(time.Duration(i) * 5 * time.Microsecond) // moves the race
		}
		shard.Unlead(stream.EndMoved, &stream.Moved{NodeID: "b1", Addr: "b1:1", Generation: 2})
		switch m := k.message().(type) {
		case *wire.ErrorMsg:
			refused++
			if m.Code != "shard_unavailable" || m.Detail == nil || m.Detail.Reason != "moving" {
				t.Fatalf("refused with %+v", m)
			}
		case *wire.Subscribed:
			served++
			_, b := c.acceptEvents().frame()
			if m, err := wire.DecodeMessage(b); err != nil || m.MessageType() != "shard_moved" {
				t.Fatalf("got %+v, %v", m, err)
			}
		default:
			t.Fatalf("got %s", m.MessageType())
		}
	}
	t.Logf("%d served, %d refused", served, refused)
	if n := len(shard.Subscriptions()); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}
