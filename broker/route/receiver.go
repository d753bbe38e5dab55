package route

import (
	"context"
	"errors"
	"log/slog"
	"net"
)

// ReceiverConfig configures a Receiver. Zero values are the defaults in brackets.
type ReceiverConfig struct {
	// Table says which shards are here. Required.
	Table Table
	// Bytes bounds the publishes of all brokers that are not committed yet (128 MiB), and
	// ShardBytes those for one shard (16 MiB).
	Bytes, ShardBytes int64
	// Log; nil: none.
	Log *slog.Logger
}

// Receiver takes publishes from other brokers. Its methods may be called from any
// goroutine.
type Receiver struct{ cfg ReceiverConfig }

// NewReceiver makes one.
func NewReceiver(cfg ReceiverConfig) (*Receiver, error) {
	if cfg.Table == nil {
		return nil, errors.New("route: no table")
	}
	return &Receiver{cfg: cfg}, nil
}

// Serve serves one connection of kind peer.KindForward until that ends or ctx is over,
// and closes it: a handler for peer.Transport.Handle.
func (r *Receiver) Serve(_ context.Context, conn net.Conn) { _ = conn.Close() }
