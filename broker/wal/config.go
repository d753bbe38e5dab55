package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"felix.dev/felix/broker/vfs"
)

const (
	defaultFileBytes  = 64 << 20
	defaultMaxBytes   = 512 << 20
	defaultBatchBytes = 4 << 20
	defaultCacheBytes = 32 << 20
	defaultAlone      = 200 * time.Millisecond

	maxFileBytes  = 1 << 30
	maxBatchBytes = 64 << 20

	// maxKeyBytes bounds the key of a journal or a store of entries.
	maxKeyBytes = 200
	// maxItemBytes bounds what one journal append or one entry takes.
	maxItemBytes = 64 << 20
)

// Config says where a write-ahead log is and how it behaves. Only Dir is needed.
type Config struct {
	FS  vfs.FS // nil: vfs.OS
	Dir string // the log's own directory, created if it is missing

	FileBytes int64 // a file is followed by another when it has reached this; 0: 64 MiB
	MaxBytes  int64 // Pressure is called while all files together hold more; 0: 512 MiB. It is no limit: nothing is refused

	// BatchBytes bounds what waits to be written while a commit is under way: who
	// would exceed it waits. 0: 4 MiB. One larger item still goes, alone.
	BatchBytes int
	// CacheBytes bounds the recent entries that are kept in memory, of all stores
	// together. 0: 32 MiB; negative: none.
	CacheBytes int64
	// Alone is how long nobody else must have appended for Journal.Append to decline,
	// because its log can flush its own file as cheaply. 0: 200 ms; negative: it
	// never declines for that.
	Alone time.Duration

	// Pressure is called with the keys that keep the oldest file from being dropped,
	// again after a second while it stays so. It comes from a goroutine of its own and
	// may block; Close waits for it. nil: nobody is asked.
	Pressure func(keys []string)
	// Synced is told how long each flush of a commit took and what came of it. It
	// must not block and not call the log. nil: nobody is told.
	Synced func(took time.Duration, err error)

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: nothing is logged

	random io.Reader // for tests
}

// Validate reports every problem of the configuration.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("wal: config: "+format, args...)) }
	if c.Dir == "" {
		bad("dir is empty")
	}
	if c.FileBytes < 0 || c.FileBytes > maxFileBytes {
		bad("file bytes %d are not between 0 and %d", c.FileBytes, maxFileBytes)
	}
	if c.MaxBytes < 0 {
		bad("max bytes %d is negative", c.MaxBytes)
	}
	if c.BatchBytes < 0 || c.BatchBytes > maxBatchBytes {
		bad("batch bytes %d are not between 0 and %d", c.BatchBytes, maxBatchBytes)
	}
	return errors.Join(errs...)
}

// WithDefaults is the configuration with what is not set filled in.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}

func (c *Config) setDefaults() {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.FileBytes == 0 {
		c.FileBytes = defaultFileBytes
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = defaultBatchBytes
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCacheBytes
	}
	if c.Alone == 0 {
		c.Alone = defaultAlone
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.random == nil {
		c.random = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
