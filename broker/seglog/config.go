package seglog

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"felix.dev/felix/broker/vfs"
)

// Fsync says when an append counts as committed.
type Fsync uint8

const (
	// FsyncAlways commits after the flush that covers the append.
	FsyncAlways Fsync = iota
	// FsyncInterval commits after the write; flushes follow within FsyncEvery. A
	// power cut takes what was written since the last flush, a crash of the
	// process takes nothing.
	FsyncInterval
	// FsyncManual commits after the write; nothing is flushed but by Sync, Checkpoint,
	// the end of a segment and Close, and nothing is removed but by TrimTo and Reset.
	// It is for who can bring back what was not flushed, from a log of his own.
	FsyncManual
)

const (
	defaultSegmentBytes = 64 << 20
	defaultIndexEvery   = 64 << 10
	defaultFsyncEvery   = time.Second
	defaultJournalMax   = 32 << 10

	// Segments are cut so that retention by bytes frees about an eighth of
	// MaxBytes at a time, not most of it.
	segmentsPerMaxBytes   = 8
	minSegmentForMaxBytes = 64 << 10
)

// Config says where a log is and how it behaves. Only Dir is needed.
type Config struct {
	FS  vfs.FS // nil: vfs.OS
	Dir string // the log's own directory, created if it is missing

	SegmentBytes int64         // a segment is closed when an append would pass this; 0: 64 MiB. An append is never split, so that one larger than this makes a larger segment. With MaxBytes, segments are at most an eighth of it.
	IndexEvery   int           // bytes between two entries of the sparse index; 0: 64 KiB
	Fsync        Fsync         // zero value: FsyncAlways
	FsyncEvery   time.Duration // for FsyncInterval; 0: 1 s
	Prefill      bool          // fill segments with zeros ahead of use, in the background: flushes get cheaper, the disk fuller by up to 32 MiB. A log that holds little is not filled ahead, nor one in FsyncManual mode, nor while the journal takes what is appended.

	First       uint64   // offset of the first record ever, for a log that holds nothing yet
	Incarnation [16]byte // which log this is: a segment that says otherwise is refused with ErrFormat

	// Journal holds what is appended under FsyncAlways until the segment is flushed, so
	// that many logs need one flush together; nil: each append has its own segment
	// flushed. In the other modes it is only read, at Open: an earlier Open may have
	// used it. JournalMax is the largest append, in bytes, that goes there; 0: 32 KiB.
	Journal    Journal
	JournalMax int

	MaxBytes int64         // retention: remove the oldest segments while the log is larger; 0: no bound
	MaxAge   time.Duration // retention: remove segments whose newest record is older; 0: no bound

	// RestoreState is called by Open, before any OnRecover, with the newest state
	// that is intact. If it returns an error an older one is tried.
	RestoreState func(state []byte) error
	// OnRecover is called by Open for each record after that state, or each record
	// of the last segment if RestoreState is nil. Frame is only valid during the call.
	OnRecover func(Record)
	// SnapshotState is called from inside Append when a segment begins, before any
	// of that call's records is written. It must return the state as of all records
	// of earlier Appends and of none of this one.
	SnapshotState func() []byte

	// Committed is called with the first offset that is not yet committed, rising,
	// always from the same goroutine, possibly before the Append that it belongs to
	// has returned. FsyncAlways: all below is flushed. FsyncInterval: all below is
	// written. With a non-nil error (once, ErrPoisoned) nothing more will be
	// committed. It must not call Append or Close.
	Committed func(next uint64, err error)

	// Synced is told how long each flush of records took and what came of it, Trimmed
	// how many segments retention removed. They are for counting: called from the
	// log's own goroutines or from Trim, they must not block and not call the log.
	// nil: nobody is told.
	Synced  func(took time.Duration, err error)
	Trimmed func(segments int)

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: nothing is logged

	prefill prefillSizes // for tests
}

// Validate reports every problem of the configuration.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("seglog: config: "+format, args...)) }
	if c.Dir == "" {
		bad("dir is empty")
	}
	if c.SegmentBytes < 0 {
		bad("segment bytes %d is negative", c.SegmentBytes)
	}
	if c.IndexEvery < 0 {
		bad("index every %d is negative", c.IndexEvery)
	}
	if c.Fsync > FsyncManual {
		bad("unknown fsync mode %d", c.Fsync)
	}
	if c.JournalMax < 0 {
		bad("journal max %d is negative", c.JournalMax)
	}
	if c.Fsync == FsyncManual && (c.MaxBytes != 0 || c.MaxAge != 0) {
		bad("retention with fsync mode %d", c.Fsync)
	}
	if c.FsyncEvery < 0 {
		bad("fsync every %s is negative", c.FsyncEvery)
	}
	if c.MaxBytes < 0 {
		bad("max bytes %d is negative", c.MaxBytes)
	}
	if c.MaxAge < 0 {
		bad("max age %s is negative", c.MaxAge)
	}
	if c.SnapshotState != nil && c.RestoreState == nil {
		bad("snapshot state without restore state")
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = defaultSegmentBytes
	}
	if c.MaxBytes > 0 {
		c.SegmentBytes = min(c.SegmentBytes, max(c.MaxBytes/segmentsPerMaxBytes, minSegmentForMaxBytes))
	}
	if c.IndexEvery == 0 {
		c.IndexEvery = defaultIndexEvery
	}
	if c.FsyncEvery == 0 {
		c.FsyncEvery = defaultFsyncEvery
	}
	if c.Fsync == FsyncManual { // no flush that somebody waits for
		c.Prefill = false
	}
	if c.JournalMax == 0 {
		c.JournalMax = defaultJournalMax
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.prefill == (prefillSizes{}) {
		c.prefill = defaultPrefill
	}
}

// WithDefaults is the configuration with what is not set filled in.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}
