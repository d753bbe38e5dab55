package route

import (
	"testing"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// twoNodes has a lead shard0, whose records are thrown away.
func twoNodes(t testing.TB) *cluster {
	t.Helper()
	c := newCluster(t, nil, "a", "b")
	t.Cleanup(c.close)
	r := newReplica(t, &book{})
	r.does(func(p *stream.Publish) { p.Done(stream.Result{Offset: 1}) })
	c.leads(shard0, "a", r, 1)
	return c
}

// one publishes again and again, each when the last one is answered.
func one(t testing.TB, p stream.Place, size int) func() {
	t.Helper()
	done := make(chan stream.Result, 1)
	answered := func(r stream.Result) { done <- r }
	pub := &stream.Publish{Records: wire.RecordsOf(make([]byte, size)), Done: answered}
	return func() {
		p.Publish(pub)
		if r := <-done; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// The budget of the hot path. A shard that is here costs its publishers nothing.
func TestAllocations(t *testing.T) {
	c := twoNodes(t)
	for node, most := range map[string]float64{"a": 0, "b": 4} {
		publish := one(t, c.nodes[node].f.Place(shard0), 256)
		publish()
		if n := testing.AllocsPerRun(1000, publish); n > most {
			t.Errorf("from %s: %.1f allocations for a publish, want at most %.0f", node, n, most)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	c := twoNodes(b)
	for name, node := range map[string]string{"here": "a", "elsewhere": "b"} {
		b.Run(name, func(b *testing.B) {
			publish := one(b, c.nodes[node].f.Place(shard0), 256)
			b.ReportAllocs()
			for b.Loop() {
				publish()
			}
		})
	}
}
