package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"felix.dev/felix/broker/wire"
)

// raceDial tries addresses in their order and returns the first result. Each one is tried alone for stagger; then, or
// when it fails, the next one is tried beside it, so that a dead broker at the front of the list costs little. An
// error for which final is true ends the attempt at once. It returns when all its goroutines have ended; results
// that came too late are discarded.
func raceDial[T any](ctx context.Context, addrs []string, stagger time.Duration,
	dial func(context.Context, string) (T, error), final func(error) bool, discard func(T),
) (T, error) {
	type result struct {
		i     int
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var none T
	results := make(chan result, len(addrs))
	errs := make([]error, len(addrs))
	started, running := 0, 0
	timer := time.NewTimer(stagger)
	defer timer.Stop()
	start := func() {
		if started == len(addrs) {
			return
		}
		i := started
		started++
		running++
		timer.Reset(stagger)
		go func() {
			v, err := dial(ctx, addrs[i])
			results <- result{i, v, err}
		}()
	}
	// drain waits for what is still running.
	drain := func() {
		cancel()
		for ; running > 0; running-- {
			if r := <-results; r.err == nil {
				discard(r.value)
			}
		}
	}
	start()
	for running > 0 {
		select {
		case <-timer.C:
			start()
		case r := <-results:
			running--
			switch {
			case r.err == nil:
				drain()
				return r.value, nil
			case final(r.err) || ctx.Err() != nil:
				drain()
				return none, r.err
			}
			errs[r.i] = fmt.Errorf("%s: %w", addrs[r.i], r.err)
			start()
		}
	}
	return none, &ConnectError{Errs: errs}
}

// finalDialError says that other addresses would answer the same.
func finalDialError(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Retry == wire.RetryFatal || errors.Is(err, ErrClosed) || isA[*tokenError](err)
}

// resolve finds the IPv4 addresses behind host:port.
func resolve(ctx context.Context, addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{addr}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return nil, err
	}
	addrs := make([]string, 0, len(ips))
	for _, ip := range ips {
		addrs = append(addrs, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return addrs, nil
}

// udpAddr parses an address that resolve returned.
func udpAddr(addr string) (*net.UDPAddr, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())), nil
}

// addrBook is the list of brokers that may be dialled, best first. It is not safe for concurrent use.
type addrBook struct {
	entries []addrEntry
}

type addrEntry struct {
	addr    string
	learned bool
}

// maxLearned bounds what brokers can add to the list.
const maxLearned = 64

func newAddrBook(configured []string) *addrBook {
	b := &addrBook{}
	for _, a := range configured {
		if b.find(a) < 0 {
			b.entries = append(b.entries, addrEntry{addr: a})
		}
	}
	return b
}

func (b *addrBook) find(addr string) int {
	for i, e := range b.entries {
		if e.addr == addr {
			return i
		}
	}
	return -1
}

// learn adds an address at the end. Configured ones are never removed; the oldest learned one is, when there are too
// many.
func (b *addrBook) learn(addr string) {
	if b.find(addr) >= 0 || validAddr(addr) != nil {
		return
	}
	learned, oldest := 0, -1
	for i, e := range b.entries {
		if e.learned {
			learned++
			if oldest < 0 {
				oldest = i
			}
		}
	}
	if learned >= maxLearned {
		b.entries = append(b.entries[:oldest], b.entries[oldest+1:]...)
	}
	b.entries = append(b.entries, addrEntry{addr: addr, learned: true})
}

// demote moves an address to the end: its connection was just lost, so the others are tried first.
func (b *addrBook) demote(addr string) {
	i := b.find(addr)
	if i < 0 {
		return
	}
	e := b.entries[i]
	b.entries = append(append(b.entries[:i], b.entries[i+1:]...), e)
}

// other is the best address but for one, "" if there is none.
func (b *addrBook) other(addr string) string {
	for _, e := range b.entries {
		if e.addr != addr {
			return e.addr
		}
	}
	return ""
}

// learned says whether addr did not come from the configuration.
func (b *addrBook) learned(addr string) bool {
	i := b.find(addr)
	return i < 0 || b.entries[i].learned
}

func (b *addrBook) addrs() []string {
	out := make([]string, len(b.entries))
	for i, e := range b.entries {
		out[i] = e.addr
	}
	return out
}
