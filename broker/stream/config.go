package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"felix.dev/felix/broker/wire"
)

// Config is what one shard is opened with. Zero values are the documented defaults.
type Config struct {
	Name  Name
	Shard uint32
	// TailBytes bounds the ring of newest batches (64 MiB).
	TailBytes int64
	// Queue bounds the lag of a subscription (4096 entries, 128 MiB, DropNew). Of a
	// memory shard under Block it is at most TailBytes, because the ring then keeps
	// what a reader still needs.
	Queue Queue
	// BlockTimeout is how long a subscription may hold publishers up under Block
	// before it is ended as lagged (30 s).
	BlockTimeout time.Duration
	// PublishWait is how long one publish is held up under Block before it is
	// refused; it is below every client's patience (10 s).
	PublishWait time.Duration
	// PollInterval bounds what a lost wake-up costs (5 s).
	PollInterval time.Duration
	// BatchEvents and BatchBytes bound the frame that small publishes share (64, 256 KiB).
	BatchEvents int
	BatchBytes  int
	// First is the first offset of a memory shard: above all that was ever used
	// under its name.
	First uint64
	// Reserve, for memory shards, makes sure that offsets below upTo are never used
	// again, however the broker ends, and gives the mark up to which that now holds.
	// It is called before the first offset at a mark is handed out.
	Reserve func(upTo uint64) (mark uint64, err error)
	// Now and Jitter (in [0,1)) are the clock and the randomness.
	Now    func() time.Time
	Jitter func() float64
}

func (c *Config) setDefaults() {
	if c.TailBytes == 0 {
		c.TailBytes = 64 << 20
	}
	if c.Queue.Entries == 0 {
		c.Queue.Entries = 4096
	}
	if c.Queue.Bytes == 0 {
		c.Queue.Bytes = 128 << 20
	}
	if c.BlockTimeout == 0 {
		c.BlockTimeout = 30 * time.Second
	}
	if c.PublishWait == 0 {
		c.PublishWait = 10 * time.Second
	}
	if c.PollInterval == 0 {
		c.PollInterval = 5 * time.Second
	}
	if c.BatchEvents == 0 {
		c.BatchEvents = 64
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = 256 << 10
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
}

// WithDefaults is the configuration with what is not set filled in.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}

// Validate reports every problem of c at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(what string, v any) { errs = append(errs, fmt.Errorf("stream: %s: %v is out of range", what, v)) }
	if c.TailBytes < 0 {
		bad("tail bytes", c.TailBytes)
	}
	if c.Queue.Entries < 0 || c.Queue.Entries > 1<<20 {
		bad("queue entries", c.Queue.Entries)
	}
	if c.Queue.Bytes < 0 {
		bad("queue bytes", c.Queue.Bytes)
	}
	if c.BlockTimeout < 0 || c.PublishWait < 0 || c.PollInterval < 0 {
		bad("a timeout", min(c.BlockTimeout, c.PublishWait, c.PollInterval))
	}
	if c.BatchEvents < 0 || c.BatchBytes < 0 || c.BatchBytes > wire.MaxRecordsBytes {
		bad("batch bounds", fmt.Sprintf("%d events, %d bytes", c.BatchEvents, c.BatchBytes))
	}
	return errors.Join(errs...)
}
