package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/metrics"
)

// verifyHandshakes is how many handshakes may be under way before an address has
// to prove that it is not made up, at the price of a round trip.
const verifyHandshakes = 256

var (
	errConnections = errors.New("server: too many connections")
	errAddress     = errors.New("server: too many connections from this address")
)

// gate counts connections from their first packet to their end. What it refuses is
// answered with CONNECTION_REFUSED before any of its handshake is done.
type gate struct {
	max, perAddr int
	rejected     metrics.Counters[metrics.RejectReason]

	mu          sync.Mutex
	total       int // connections, handshakes included
	established int // of those, how many completed their handshake
	byAddr      map[netip.Addr]int
}

func newGate(maximum, perAddr int, rejected metrics.Counters[metrics.RejectReason]) *gate {
	return &gate{max: maximum, perAddr: perAddr, rejected: rejected, byAddr: make(map[netip.Addr]int)}
}

type gateKey struct{}

// pass is one connection's place. Its established is guarded by gate.mu.
type pass struct {
	addr        netip.Addr
	established bool
}

// connContext is quic.Transport's ConnContext. The place is given back when the
// connection's context ends, however far its handshake came.
func (g *gate) connContext(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	p := &pass{addr: addrOf(info.RemoteAddr)}
	if err := g.enter(p); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { g.leave(p) })
	return context.WithValue(ctx, gateKey{}, p), nil
}

// verifyAddress is quic.Transport's VerifySourceAddress.
func (g *gate) verifyAddress(net.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total-g.established >= verifyHandshakes
}

func (g *gate) enter(p *pass) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.total >= g.max:
		g.rejected.With(metrics.RejectConnections).Inc()
		return errConnections
	case g.byAddr[p.addr] >= g.perAddr:
		g.rejected.With(metrics.RejectAddress).Inc()
		return errAddress
	}
	g.total++
	g.byAddr[p.addr]++
	return nil
}

// completed notes that the connection of ctx finished its handshake.
func (g *gate) completed(ctx context.Context) {
	p, ok := ctx.Value(gateKey{}).(*pass)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() == nil && !p.established {
		p.established = true
		g.established++
	}
}

func (g *gate) leave(p *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if p.established {
		g.established--
	} else {
		g.rejected.With(metrics.RejectHandshake).Inc()
	}
	if g.byAddr[p.addr]--; g.byAddr[p.addr] <= 0 {
		delete(g.byAddr, p.addr)
	}
}

// crowded says that three quarters of the places are taken.
func (g *gate) crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total*4 > g.max*3
}

func (g *gate) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.established
}

// addrOf is the address without its port. IPv6 clients are told apart by their
// /64, which is what one of them has.
func addrOf(a net.Addr) netip.Addr {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := u.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
