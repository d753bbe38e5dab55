package metrics

import "github.com/prometheus/client_golang/prometheus"

// Replica is updated by package replica.
type Replica struct {
	Publishes prometheus.Counter
	Fetched   prometheus.Counter
	Sent      prometheus.Counter
	Broken    prometheus.Counter
}

func newReplica(b *builder) Replica {
	return Replica{
		Publishes: b.counter("felix_replica_publishes_total", "Publishes in the entries that this broker proposed: by felix_quorum_proposals_total, those that share one."),
		Fetched:   b.counter("felix_replica_fetched_bytes_total", "Records that this broker lacked and fetched from others."),
		Sent:      b.counter("felix_replica_sent_bytes_total", "Records that other brokers lacked and fetched from this one."),
		Broken:    b.counter("felix_replica_broken_shards_total", "Times that a replicated shard was found damaged or short of records here; it is fetched from others."),
	}
}
