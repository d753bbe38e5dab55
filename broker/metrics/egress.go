package metrics

import "github.com/prometheus/client_golang/prometheus"

// Egress is updated by the feeders and lanes.
type Egress struct {
	Bytes    prometheus.Counter
	Frames   prometheus.Counter
	Records  prometheus.Counter
	Writes   prometheus.Counter
	Wakeups  prometheus.Counter
	Polls    prometheus.Counter
	LogReads prometheus.Counter
}

func newEgress(b *builder) Egress {
	return Egress{
		Bytes:    b.counter("felix_egress_bytes_total", "Bytes of event frames accepted by QUIC."),
		Frames:   b.counter("felix_egress_frames_total", "Event frames accepted by QUIC."),
		Records:  b.counter("felix_egress_records_total", "Records accepted by QUIC, once for each subscription."),
		Writes:   b.counter("felix_egress_writes_total", "Writes to QUIC streams; bytes per write is what batching gains."),
		Wakeups:  b.counter("felix_egress_wakeups_total", "Parked feeders woken because their shard moved."),
		Polls:    b.counter("felix_egress_poll_hits_total", "Polls that found something that no wake-up had announced; more than a few is a fault."),
		LogReads: b.counter("felix_egress_log_reads_total", "Pages read from logs for subscriptions behind the tail ring."),
	}
}
