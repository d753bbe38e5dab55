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

var publishResults = []PublishResult{
	PublishOK, PublishRefused,
	"unauthenticated", "forbidden", "not_found", "invalid_request", "shard_unavailable", "not_leader",
	"quorum_timeout", "leadership_lost", "unacknowledged", "overloaded", "limit_exceeded", "draining",
	"internal", "storage", "stale_claim",
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

// Publish is updated by the server and the shards.
type Publish struct {
	Requests Counters[PublishResult]
	Records  prometheus.Counter
	Bytes    prometheus.Counter
	Shed     Counters[ShedReason]
	Ack      prometheus.Histogram // seconds
	Appends  prometheus.Counter
}

func newPublish(b *builder) Publish {
	return Publish{
		Requests: counters(b, "felix_publish_requests_total", "Publish requests answered or, if unacked, done with.", "result", publishResults),
		Records:  b.counter("felix_publish_records_total", "Records committed."),
		Bytes:    b.counter("felix_publish_bytes_total", "Payload bytes of records committed."),
		Shed: counters(b, "felix_publish_shed_total", "Publish requests turned away for want of room.", "reason",
			[]ShedReason{ShedProcessBytes, ShedConnectionBytes, ShedShardQueue, ShedReaders}),
		Ack:     b.seconds("felix_publish_ack_seconds", "Time from the last byte of an acked publish to its answer."),
		Appends: b.counter("felix_publish_appends_total", "Appends that publishes were merged into; requests per append is the merge factor."),
	}
}
