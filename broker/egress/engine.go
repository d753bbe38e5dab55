package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/stream"
)

// ResetLost tells a client that its subscription is lost here and may be resumed.
const ResetLost quic.StreamErrorCode = 1

// Writer is the QUIC stream that a subscription is written to; *quic.SendStream is one.
type Writer interface {
	io.Writer
	// TryWriteAll queues all of a small write without waiting, or nothing.
	TryWriteAll([]byte) error
	SetWriteDeadline(time.Time) error
	Close() error
	CancelWrite(quic.StreamErrorCode)
	// Context ends when the client drops the stream or the connection is gone.
	Context() context.Context
}

// Config sets the engine up. Zero values are the documented defaults.
type Config struct {
	// Lanes is how many wake-up lanes there are (4).
	Lanes int
	// Policy picks a subscription's lane (SubscriberIDHash).
	Policy LanePolicy
	// SpreadConnections lets one connection's subscriptions use several lanes.
	SpreadConnections bool
	// SlowConsumerTimeout is how long a write may make no progress (30 s).
	SlowConsumerTimeout time.Duration
	// MaxBytesPerConnection bounds what is read for a connection and not yet taken
	// by QUIC (256 MiB), in equal shares of its subscriptions, and MaxBytes does so for
	// all connections (1 GiB).
	MaxBytesPerConnection, MaxBytes int64
	// PieceBytes is the size of one Write under load (32 KiB).
	PieceBytes int
	// LargeBytes bounds what all subscriptions together hold of frames above 256 KiB
	// that are read from the log or converted (512 MiB), and a quarter of it what those
	// of a connection do: the others wait.
	LargeBytes int64
	// LaneBytes bounds what a lane's subscriptions have under way from the ring
	// (64 MiB): with many subscriptions pieces get smaller, down to 4 KiB.
	LaneBytes int64
}

const (
	minPiece = 4 << 10
	maxPage  = 256 << 10
	// stepBytes is the most that one deadline is held against: a larger frame is
	// written in steps, so that "no progress" means these bytes and not all of it.
	stepBytes = 64 << 10
)

func (c *Config) setDefaults() {
	if c.Lanes == 0 {
		c.Lanes = 4
	}
	if c.SlowConsumerTimeout == 0 {
		c.SlowConsumerTimeout = 30 * time.Second
	}
	if c.MaxBytesPerConnection == 0 {
		c.MaxBytesPerConnection = 256 << 20
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 30
	}
	if c.PieceBytes == 0 {
		c.PieceBytes = 32 << 10
	}
	if c.LargeBytes == 0 {
		c.LargeBytes = 512 << 20
	}
	if c.LaneBytes == 0 {
		c.LaneBytes = 64 << 20
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
	check := func(ok bool, what string, v any) {
		if !ok {
			errs = append(errs, fmt.Errorf("egress: %s: %v is out of range", what, v))
		}
	}
	check(c.Lanes >= 0 && c.Lanes <= 64, "lanes", c.Lanes)
	check(c.Policy <= RoundRobinPin, "lane policy", c.Policy)
	check(c.SlowConsumerTimeout >= 0, "slow consumer timeout", c.SlowConsumerTimeout)
	check(c.MaxBytesPerConnection >= 0, "bytes per connection", c.MaxBytesPerConnection)
	check(c.MaxBytes >= 0, "bytes", c.MaxBytes)
	check(c.PieceBytes == 0 || c.PieceBytes >= minPiece, "piece bytes", c.PieceBytes)
	check(c.LargeBytes >= 0, "bytes of large frames", c.LargeBytes)
	check(c.LaneBytes >= 0, "lane bytes", c.LaneBytes)
	return errors.Join(errs...)
}

// Engine runs the feeders of all subscriptions of a broker.
type Engine struct {
	cfg     Config
	lanes   []*lane
	robin   atomic.Uint64
	feeders sync.WaitGroup
	large   *room
	pages   shares
	stats   counters
}

// shares are equal parts of what all subscriptions may read ahead.
type shares struct {
	limit int64
	subs  atomic.Int64
}

func (s *shares) each() int64 { return s.limit / max(s.subs.Load(), 1) }

type counters struct{ bytes, records, writes atomic.Uint64 }

// Stats are totals since the engine was made.
type Stats struct{ Bytes, Records, Writes, Wakeups uint64 }

// New makes an engine and starts its lanes.
func New(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	e := &Engine{cfg: cfg, large: newRoom(cfg.LargeBytes), pages: shares{limit: cfg.MaxBytes}}
	for range cfg.Lanes {
		e.lanes = append(e.lanes, newLane())
	}
	return e, nil
}

// Stats reads the totals.
func (e *Engine) Stats() Stats {
	s := Stats{Bytes: e.stats.bytes.Load(), Records: e.stats.records.Load(), Writes: e.stats.writes.Load()}
	for _, l := range e.lanes {
		s.Wakeups += l.wakeups.Load()
	}
	return s
}

// wrote counts a piece that QUIC has taken.
func (e *Engine) wrote(bytes, records int) {
	e.stats.bytes.Add(uint64(bytes))
	e.stats.records.Add(uint64(records))
	e.stats.writes.Add(1)
}

// Close waits for all feeders, which end when their connections are closed or their
// subscriptions stopped, and then stops the lanes.
func (e *Engine) Close() {
	e.feeders.Wait()
	for _, l := range e.lanes {
		l.close()
	}
}

// Conn is the egress share of one connection.
type Conn struct {
	id    uint64
	pages shares
	all   *shares // of the engine
	large *room
	lane  atomic.Pointer[lane]
}

// NewConn makes the share of a connection.
func (e *Engine) NewConn(id uint64) *Conn {
	limit := e.cfg.MaxBytesPerConnection
	return &Conn{id: id, pages: shares{limit: limit}, all: &e.pages, large: newRoom(min(limit, e.cfg.LargeBytes/largeShare))}
}

// Subscriptions is how many are running on the connection.
func (c *Conn) Subscriptions() int { return int(c.pages.subs.Load()) }

// pageBytes is how much one subscription may read ahead from the log: its equal
// share, so that it waits for nobody else's bytes.
func (c *Conn) pageBytes(piece int) int {
	share := min(c.pages.each(), c.all.each())
	return int(min(max(share, int64(piece)), maxPage))
}

// Start runs a subscription on a stream whose hello is already written. It owns sub
// from here on; end is called once, from the feeder's goroutine, when all is over.
func (e *Engine) Start(c *Conn, sub *stream.Subscription, w Writer, end func(stream.End)) {
	l := e.pick(c, sub.ID())
	f := &feeder{engine: e, lane: l, conn: c, sub: sub, w: w, end: end}
	c.pages.subs.Add(1)
	e.pages.subs.Add(1)
	e.feeders.Add(1)
	f.group = l.join(sub.Shard())
	f.unhook = context.AfterFunc(w.Context(), f.poke)
	sub.OnStop(func(r stream.EndReason) {
		if r == stream.EndRemoved {
			_ = w.SetWriteDeadline(time.Unix(1, 0)) // an error says that it is over already
		}
		f.poke()
	})
	go f.run()
}
