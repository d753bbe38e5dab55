package devcluster

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const host = "127.0.0.1"

var listen net.ListenConfig

// choosePorts gives every broker its addresses.
func choosePorts(ctx context.Context, cfg *Config, brokers []*Broker) error {
	if !cfg.FreePorts {
		first := cmp.Or(cfg.Port, defaultPort)
		for i, b := range brokers {
			at := func(n int) string { return net.JoinHostPort(host, strconv.Itoa(first+10*i+n)) }
			b.Addr, b.Admin, b.Peer = at(0), at(1), at(2)
		}
		err := allFree(ctx, brokers)
		if err == nil || cfg.Port != 0 {
			return err
		}
	}
	// All are held until the last is found, so that none is given twice.
	held := &holder{}
	defer held.release()
	for _, b := range brokers {
		var err error
		if b.Addr, err = held.udp(ctx); err != nil {
			return err
		}
		if b.Admin, err = held.tcp(ctx); err != nil {
			return err
		}
		if b.Peer, err = held.tcp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// allFree says which address is taken.
func allFree(ctx context.Context, brokers []*Broker) error {
	for _, b := range brokers {
		c, err := listen.ListenPacket(ctx, "udp", b.Addr)
		if err != nil {
			return fmt.Errorf("broker %s: %w", b.Name, err)
		}
		_ = c.Close() // nothing was sent
		for _, addr := range []string{b.Admin, b.Peer} {
			l, err := listen.Listen(ctx, "tcp", addr)
			if err != nil {
				return fmt.Errorf("broker %s: %w", b.Name, err)
			}
			_ = l.Close() // nobody was accepted
		}
	}
	return nil
}

// holder keeps ports.
type holder struct{ closers []func() error }

// Ports are looked for here: below those that systems give to whoever connects, of which one might be in use for that by the time
// that a broker asks for it.
const (
	firstFree = 10_000
	lastFree  = 32_000
	tries     = 200
)

func (h *holder) udp(ctx context.Context) (string, error) {
	return h.find(func(addr string) (net.Addr, func() error, error) {
		c, err := listen.ListenPacket(ctx, "udp", addr)
		if err != nil {
			return nil, nil, err
		}
		return c.LocalAddr(), c.Close, nil
	})
}

func (h *holder) tcp(ctx context.Context) (string, error) {
	return h.find(func(addr string) (net.Addr, func() error, error) {
		l, err := listen.Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, nil, err
		}
		return l.Addr(), l.Close, nil
	})
}

// find tries ports at random.
func (h *holder) find(take func(addr string) (net.Addr, func() error, error)) (string, error) {
	var last error
	for range tries {
		port := firstFree + rand.IntN(lastFree-firstFree) //nolint:gosec // any will do
		addr, closer, err := take(net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			h.closers = append(h.closers, closer)
			return addr.String(), nil
		}
		last = err
	}
	return "", last
}

func (h *holder) release() {
	for _, c := range h.closers {
		_ = c() // nothing was sent or accepted
	}
}
