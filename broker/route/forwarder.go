package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"felix.dev/felix/broker/stream"
)

// Config configures a Forwarder. Zero values are the defaults in brackets.
type Config struct {
	// Table says where shards are. Required.
	Table Table
	// Dial connects to the Receiver of a node: peer.Transport.Dial with KindForward.
	// Required.
	Dial func(ctx context.Context, node string) (net.Conn, error)

	// HoldTime is how long a publish waits for somebody to serve its shard (2 s), and
	// MaxHeld how many do at a time (1024).
	HoldTime time.Duration
	MaxHeld  int
	// AnswerTimeout bounds the time from Publish to its answer, whatever it waits for (8 s).
	AnswerTimeout time.Duration
	// SilenceTimeout is how long an owner that has publishes may be silent before its
	// connection is given up (2 s): a living one answers a ping at once.
	SilenceTimeout time.Duration
	// DialTimeout bounds one attempt to connect (1 s).
	DialTimeout time.Duration
	// IdleTimeout is when a connection without publishes is closed (1 min).
	IdleTimeout time.Duration

	// ShardBytes and ShardEntries bound what waits for one shard that is elsewhere and
	// what is under way to it (32 MiB, 16384), and OwnerBytes and OwnerEntries what is
	// under way to one owner (64 MiB, 32768). WindowBytes and WindowEntries are the part
	// of it that one shard may have (2 MiB, 2048).
	ShardBytes, OwnerBytes, WindowBytes       int64
	ShardEntries, OwnerEntries, WindowEntries int

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

// Forwarder is the sending side of a broker. Its methods may be called from any goroutine.
type Forwarder struct{ cfg Config }

// NewForwarder makes one. It connects to nobody before there is something to forward.
func NewForwarder(cfg Config) (*Forwarder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Forwarder{cfg: cfg}, nil
}

// Place is the place of a shard: the same one for the same key until Remove.
func (f *Forwarder) Place(k Key) *Place { return &Place{f: f, key: k} }

// Remove forgets a shard whose stream was deleted: what waits is refused as not_found,
// and so is what its place is still given.
func (f *Forwarder) Remove(Key) {}

// Close refuses what comes from now on and what waits, and ends every connection; what
// is under way to others is answered as long as ctx lasts.
func (f *Forwarder) Close(context.Context) error { return nil }

// Place is one shard, as this broker sees it. It is a stream.Place.
type Place struct {
	f   *Forwarder
	key Key
}

// Publish hands a batch on.
func (p *Place) Publish(pub *stream.Publish) {
	if s := p.f.cfg.Table.Lookup(p.key); s.Local != nil {
		s.Local.Publish(pub)
		return
	}
	pub.Done(stream.Result{Err: stream.ErrClosed})
}

// Here gives the shard if it is here, and else who has it.
func (p *Place) Here() (*stream.Shard, *stream.Elsewhere) {
	s := p.f.cfg.Table.Lookup(p.key)
	if s.Local != nil {
		return s.Local, nil
	}
	return nil, &stream.Elsewhere{NodeID: s.Node, Addr: s.Addr, Generation: s.Generation, Reason: s.Reason}
}

// Generation is that of whoever serves the shard.
func (p *Place) Generation() uint64 { return p.f.cfg.Table.Lookup(p.key).Generation }
