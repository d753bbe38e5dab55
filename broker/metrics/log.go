package metrics

import "github.com/prometheus/client_golang/prometheus"

// LogErrorKind is what a log could not do.
type LogErrorKind string

// Kinds of log errors.
const (
	LogWrite      LogErrorKind = "write"
	LogSync       LogErrorKind = "sync" // poisons the log
	LogRead       LogErrorKind = "read"
	LogFull       LogErrorKind = "disk_full"
	LogReadOnly   LogErrorKind = "read_only"
	LogCorruption LogErrorKind = "corruption"
)

// Log is updated by the owners of segment logs.
type Log struct {
	Sync    prometheus.Histogram // seconds
	Syncs   prometheus.Counter
	Errors  Counters[LogErrorKind]
	Trimmed prometheus.Counter
}

func newLog(b *builder) Log {
	return Log{
		Sync:  b.seconds("felix_log_sync_seconds", "Time of one data sync of a segment."),
		Syncs: b.counter("felix_log_syncs_total", "Data syncs of segments; stands still when nothing is published."),
		Errors: counters(b, "felix_log_errors_total", "Errors of segment logs.", "kind",
			[]LogErrorKind{LogWrite, LogSync, LogRead, LogFull, LogReadOnly, LogCorruption}),
		Trimmed: b.counter("felix_log_segments_trimmed_total", "Segments removed by retention."),
	}
}
