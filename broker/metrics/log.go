package metrics

import "github.com/prometheus/client_golang/prometheus"

// LogErrorKind is what a log could not do.
type LogErrorKind string

// Kinds of log errors.
const (
	LogFull       LogErrorKind = "disk_full"  // an append was refused
	LogReadOnly   LogErrorKind = "read_only"  // an append was refused
	LogWrite      LogErrorKind = "write"      // an append was refused for another reason; nothing of it was written
	LogPoisoned   LogErrorKind = "poisoned"   // a write or flush failed: no more appends until it is reopened
	LogCorruption LogErrorKind = "corruption" // damage was met, by a reader or when it was opened
	LogRead       LogErrorKind = "read"       // the disk did not give what is there
)

// Log is updated by the owners of segment logs.
type Log struct {
	Appends prometheus.Counter
	Sync    prometheus.Histogram // seconds
	WALSync prometheus.Histogram // seconds
	Errors  Counters[LogErrorKind]
	Trimmed prometheus.Counter
}

func newLog(b *builder) Log {
	return Log{
		Appends: b.counter("felix_log_appends_total", "Writes to logs, each with the publishes that waited for it."),
		Sync:    b.seconds("felix_log_sync_seconds", "Time of one data sync of a segment; the count stands still when nothing is published."),
		WALSync: b.seconds("felix_wal_sync_seconds", "Time of one data sync of the write-ahead log; the count stands still when nothing is published."),
		Errors: counters(b, "felix_log_errors_total", "What logs could not do.", "kind",
			[]LogErrorKind{LogFull, LogReadOnly, LogWrite, LogPoisoned, LogCorruption, LogRead}),
		Trimmed: b.counter("felix_log_segments_trimmed_total", "Segments removed by retention."),
	}
}
