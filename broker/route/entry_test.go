package route

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// What is counted: nothing of a shard that is here, and else what came of it.
func TestForwardsAreCounted(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		r := newReplica(t, &book{})
		c.leads(shard0, "a", r, 1)
		newCall(t, "here").publish(c.nodes["a"].f.Place(shard0)).ok()
		f := c.nodes["b"].f
		p := f.Place(shard0)
		newCall(t, "written").publish(p).ok()
		r.refuses(&stream.Error{Code: wire.CodeStorage, Retry: wire.RetryAfter})
		newCall(t, "refused").publish(p).wait()
		r.refuses(&stream.Error{Code: wire.CodeQuorumTimeout, Retry: wire.RetryOutcomeUnknown})
		newCall(t, "unknown").publish(p).wait()
		c.nobody(shard0, "")
		held := newCall(t, "held").publish(p)
		synctest.Wait()
		if n := testutil.ToFloat64(f.m.Held); n != 1 {
			t.Errorf("%v are held", n)
		}
		held.refused(wire.CodeShardUnavailable, wire.RetryNow, "not_ready")
		got := make(map[metrics.ForwardResult]float64)
		for _, v := range []metrics.ForwardResult{metrics.ForwardWritten, metrics.ForwardRefused, metrics.ForwardUnavailable, metrics.ForwardUnknown} {
			got[v] = testutil.ToFloat64(f.m.Publishes.With(v))
		}
		want := map[metrics.ForwardResult]float64{"written": 1, "refused": 1, "unavailable": 1, "unknown": 1}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if n := testutil.ToFloat64(f.m.Held); n != 0 {
			t.Errorf("%v are held", n)
		}
		if n := testutil.ToFloat64(c.nodes["a"].f.m.Publishes.With(metrics.ForwardWritten)); n != 0 {
			t.Errorf("%v of a shard that is here were counted", n)
		}
	})
}
