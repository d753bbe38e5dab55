package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"felix.dev/felix/broker/metrics"
)

// Config configures a Forwarder. Zero values are the defaults in brackets.
type Config struct {
	// Self is the node id of this broker.
	Self string
	// Table says where shards are. Required.
	Table Table
	// Dial connects to the Receiver of a node: peer.Transport.Dial with KindForward.
	// Required.
	Dial func(ctx context.Context, node string) (net.Conn, error)

	// HoldTime is how long a publish waits for somebody to serve its shard (2 s), and
	// MaxHeld how many do at a time (1024).
	HoldTime time.Duration
	MaxHeld  int
	// AnswerTimeout bounds the time from when a publish is forwarded, or held, to its
	// answer, whatever it waits for (8 s).
	AnswerTimeout time.Duration
	// SilenceTimeout is how long an owner that has publishes may be silent before its
	// connection is given up (1.5 s): a living one answers a ping at once.
	SilenceTimeout time.Duration
	// DialTimeout bounds one attempt to connect (1 s).
	DialTimeout time.Duration
	// IdleTimeout is when a connection without publishes is closed (1 min).
	IdleTimeout time.Duration

	// ShardBytes and ShardEntries bound what waits for one shard and what is on its way
	// to it at another broker (64 MiB, 65536: as much as a server takes), and OwnerBytes and OwnerEntries what is on
	// its way to one broker (64 MiB, 32768). WindowBytes and WindowEntries are the part
	// of it that one shard may have (2 MiB, 2048). A larger publish passes alone.
	ShardBytes, OwnerBytes, WindowBytes       int64
	ShardEntries, OwnerEntries, WindowEntries int

	// Metrics to update; nil: they count for nobody.
	Metrics *metrics.Metrics
	// Log; nil: none.
	Log *slog.Logger
}

// Validate reports every problem of the configuration at once.
func (c *Config) Validate() error {
	var errs []error
	if c.Table == nil {
		errs = append(errs, errors.New("route: no table"))
	}
	if c.Dial == nil {
		errs = append(errs, errors.New("route: nothing to connect with"))
	}
	for name, v := range map[string]int64{
		"hold time": int64(c.HoldTime), "held publishes": int64(c.MaxHeld), "answer timeout": int64(c.AnswerTimeout),
		"silence timeout": int64(c.SilenceTimeout), "dial timeout": int64(c.DialTimeout), "idle timeout": int64(c.IdleTimeout),
		"bytes of a shard": c.ShardBytes, "bytes of an owner": c.OwnerBytes, "window bytes": c.WindowBytes,
		"entries of a shard": int64(c.ShardEntries), "entries of an owner": int64(c.OwnerEntries),
		"window entries": int64(c.WindowEntries),
	} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("route: %s: %d is negative", name, v))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	c.HoldTime = cmp.Or(c.HoldTime, 2*time.Second)
	c.MaxHeld = cmp.Or(c.MaxHeld, 1024)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, 8*time.Second)
	c.SilenceTimeout = cmp.Or(c.SilenceTimeout, 1500*time.Millisecond)
	c.DialTimeout = cmp.Or(c.DialTimeout, time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.ShardBytes = cmp.Or(c.ShardBytes, 64<<20)
	c.ShardEntries = cmp.Or(c.ShardEntries, 65536)
	c.OwnerBytes = cmp.Or(c.OwnerBytes, 64<<20)
	c.OwnerEntries = cmp.Or(c.OwnerEntries, 32768)
	c.WindowBytes = cmp.Or(c.WindowBytes, 2<<20)
	c.WindowEntries = cmp.Or(c.WindowEntries, 2048)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
