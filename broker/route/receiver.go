package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// ReceiverConfig configures a Receiver. Zero values are the defaults in brackets.
type ReceiverConfig struct {
	// Table says which shards are here. Required.
	Table Table
	// Bytes bounds the publishes of all brokers that are not committed yet (128 MiB), and
	// ShardBytes those for one shard (32 MiB).
	Bytes, ShardBytes int64
	// AnswerTimeout is how long a broker may leave its answers unread (10 s).
	AnswerTimeout time.Duration
	// Log; nil: none.
	Log *slog.Logger
}

// Validate reports every problem of the configuration at once.
func (c *ReceiverConfig) Validate() error {
	var errs []error
	if c.Table == nil {
		errs = append(errs, errors.New("route: no table"))
	}
	if c.Bytes < 0 || c.ShardBytes < 0 || c.AnswerTimeout < 0 {
		errs = append(errs, fmt.Errorf("route: a bound is negative: %d, %d, %s", c.Bytes, c.ShardBytes, c.AnswerTimeout))
	}
	return errors.Join(errs...)
}

// Receiver takes publishes from other brokers. Its methods may be called from any
// goroutine.
type Receiver struct {
	cfg  ReceiverConfig
	room *room
}

// NewReceiver makes one. It has nothing to close: Serve ends with its connection.
func NewReceiver(cfg ReceiverConfig) (*Receiver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Bytes = cmp.Or(cfg.Bytes, 128<<20)
	cfg.ShardBytes = cmp.Or(cfg.ShardBytes, 32<<20)
	cfg.AnswerTimeout = cmp.Or(cfg.AnswerTimeout, 10*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Receiver{cfg: cfg, room: newRoom(cfg.Bytes, cfg.ShardBytes)}, nil
}

// Serve serves one connection of kind peer.KindForward until that ends or ctx is over,
// and closes it: a handler for peer.Transport.Handle. Shards may still have publishes of
// it then, whose answers nobody reads.
func (r *Receiver) Serve(ctx context.Context, conn net.Conn) {
	in := newIncoming(r, conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var writing sync.WaitGroup
	writing.Go(in.write)
	err := in.read()
	in.end()
	_ = conn.Close() // the end of the writer as well
	writing.Wait()
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Debug("connection for forwarded publishes is over",
			slog.String("remote", conn.RemoteAddr().String()), slog.Any("error", err))
	}
}

// Bytes is what other brokers' publishes hold now.
func (r *Receiver) Bytes() int64 { return r.room.held() }

// room bounds bytes, in all and for each shard, without anybody waiting: the brokers
// before it have bounds of their own, so that who finds none is one of very many.
type room struct {
	all, each int64

	mu    sync.Mutex
	used  int64
	byKey map[Key]int64
}

func newRoom(all, each int64) *room { return &room{all: all, each: each, byKey: make(map[Key]int64)} }

// take takes n bytes; one that is alone with its shard always gets them.
func (r *room) take(k Key, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.byKey[k]
	if have > 0 && (have+n > r.each || r.used+n > r.all) {
		return false
	}
	r.byKey[k] = have + n
	r.used += n
	return true
}

func (r *room) give(k Key, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
	if left := r.byKey[k] - n; left > 0 {
		r.byKey[k] = left
	} else {
		delete(r.byKey, k)
	}
}

func (r *room) held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}
