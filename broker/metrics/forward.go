package metrics

import "github.com/prometheus/client_golang/prometheus"

// ForwardResult is what a publish came to that its broker did not serve itself, or not at once.
type ForwardResult string

// Results of such publishes.
const (
	ForwardWritten     ForwardResult = "written"
	ForwardRefused     ForwardResult = "refused"     // by the shard or its broker
	ForwardUnavailable ForwardResult = "unavailable" // nobody took it in time
	ForwardUnknown     ForwardResult = "unknown"     // it may have been written
)

// Forward is updated by package route.
type Forward struct {
	Publishes Counters[ForwardResult]
	Again     prometheus.Counter
	Held      prometheus.Gauge
}

func newForward(b *builder) Forward {
	return Forward{
		Publishes: counters(b, "felix_forwarded_publishes_total",
			"Publishes that another broker served, or that waited for one to serve their shard.", "result",
			[]ForwardResult{ForwardWritten, ForwardRefused, ForwardUnavailable, ForwardUnknown}),
		Again: b.counter("felix_forward_retries_total", "Publishes that came back unwritten, or idempotent, and were sent again."),
		Held:  b.gauge("felix_forward_held_publishes", "Publishes that wait for a broker to serve their shard."),
	}
}
