package wal

import "time"

// Log is an open write-ahead log. Everything may be called from any goroutine.
type Log struct{ cfg Config }

// Recovery says what Open found and did.
type Recovery struct {
	Files    int
	Batches  uint64
	Bytes    int64
	Journals []string // keys that hold something
	Entries  []string // likewise
	Cut      *Cut     // the torn tail; nil: there was none
	ReadOnly error    // why appends are refused for now; nil: they are not
}

// Cut describes a torn tail: bytes of a commit that a crash interrupted. Nothing in
// them was ever reported as durable.
type Cut struct {
	File   string
	Pos    int64
	Bytes  int64
	Reason string
}

// Open opens the log in cfg.Dir, creating it if there is none.
func Open(cfg Config) (*Log, Recovery, error) {
	if err := cfg.Validate(); err != nil {
		return nil, Recovery{}, err
	}
	cfg.setDefaults()
	return &Log{cfg: cfg}, Recovery{}, nil
}

// Close writes what waits, flushes and gives up the files.
func (l *Log) Close() error { return nil }

// Err is nil while the log can be appended to as far as is known.
func (l *Log) Err() error { return nil }

// Stats is a snapshot of a log's counters; those that count began at Open.
type Stats struct {
	Files         int
	Bytes         int64  // of the files, as far as they are written
	Commits       uint64 // batches written and flushed
	Syncs         uint64 // flushes, of whatever
	SyncTime      time.Duration
	Appends       uint64 // journal appends and entries
	AppendedBytes int64
	Pinned        []string // the keys that keep the oldest file
	Err           error
}

// Stats returns a snapshot; its values may be from slightly different moments.
func (l *Log) Stats() Stats { return Stats{} }
