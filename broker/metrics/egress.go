package metrics

import "github.com/prometheus/client_golang/prometheus"

// Egress is updated by whoever reads logs for subscriptions. What is written to them
// is counted by the engine itself and read at each scrape: see EgressTotals.
type Egress struct {
	LogReads prometheus.Counter
}

func newEgress(b *builder) Egress {
	return Egress{
		LogReads: b.counter("felix_egress_log_reads_total", "Pages read from logs for subscriptions behind the tail ring."),
	}
}
