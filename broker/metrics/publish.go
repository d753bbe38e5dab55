package metrics

import "github.com/prometheus/client_golang/prometheus"

// PublishResult is what a publish came to: PublishOK, PublishRefused, or the
// wire's error code by name.
type PublishResult string

// Results of a publish that are not error codes.
const (
	PublishOK      PublishResult = "ok"
	PublishRefused PublishResult = "refused" // idempotent: gap, expired, unknown producer, reused
)

// publishResults leave out the codes that no publish is answered with: they would be
// series that never move.
var publishResults = []PublishResult{
	PublishOK, PublishRefused,
	"forbidden", "not_found", "invalid_request", "shard_unavailable", "overloaded", "draining", "storage",
	"quorum_timeout", "leadership_lost", "unacknowledged",
}

// ShedReason is which bound a publish did not fit.
type ShedReason string

// Reasons for shedding a publish.
const (
	ShedProcessBytes    ShedReason = "process_bytes"    // budget of the broker
	ShedConnectionBytes ShedReason = "connection_bytes" // budget of one connection
	ShedShardQueue      ShedReason = "shard_queue"      // queue of one shard
	ShedReaders         ShedReason = "readers"          // onFull Block: no reader made room in time
)

// Publish is updated by the server.
type Publish struct {
	Requests Counters[PublishResult]
	Records  prometheus.Counter
	Bytes    prometheus.Counter
	Shed     Counters[ShedReason]
	Ack      prometheus.Histogram // seconds
}

func newPublish(b *builder) Publish {
	return Publish{
		Requests: counters(b, "felix_publish_requests_total", "Publish requests answered or, if unacked, done with.", "result", publishResults),
		Records:  b.counter("felix_publish_records_total", "Records of publishes that were ok."),
		Bytes:    b.counter("felix_publish_bytes_total", "Payload bytes of publishes that were ok."),
		Shed: counters(b, "felix_publish_shed_total", "Publish requests turned away for want of room.", "reason",
			[]ShedReason{ShedProcessBytes, ShedConnectionBytes, ShedShardQueue, ShedReaders}),
		Ack: b.seconds("felix_publish_ack_seconds", "Time from the last byte of an acked publish to its answer."),
	}
}
