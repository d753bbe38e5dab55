package faults_test

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy is a network between clients and a broker: it passes UDP datagrams on, in
// order, and loses what it is told to lose. Trains of datagrams are taken apart by
// the kernel, as by a real network card.
type proxy struct {
	front *net.UDPConn
	back  net.Addr

	// What is lost.
	largerThan     atomic.Int64 // datagrams of more bytes; 0: none for their size
	cutUp, cutDown atomic.Bool  // everything towards the broker, towards the clients

	passed, lost atomic.Int64 // datagrams

	mu     sync.Mutex
	flows  map[netip.AddrPort]*net.UDPConn // by client; guarded by mu
	closed bool                            // guarded by mu
	tasks  sync.WaitGroup
}

const proxyBuffer = 4 << 20

// newProxy listens on loopback in front of a broker.
func newProxy(t *testing.T, broker string) *proxy {
	t.Helper()
	back, err := net.ResolveUDPAddr("udp", broker)
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{front: front, back: back, flows: map[netip.AddrPort]*net.UDPConn{}}
	buffers(front)
	p.tasks.Go(p.up)
	t.Cleanup(p.close)
	return p
}

func buffers(c *net.UDPConn) {
	_ = c.SetReadBuffer(proxyBuffer) // what is granted will do
	_ = c.SetWriteBuffer(proxyBuffer)
}

func (p *proxy) addr() string { return p.front.LocalAddr().String() }

// pass counts a datagram and says whether it gets through.
func (p *proxy) pass(n int, cut *atomic.Bool) bool {
	limit := p.largerThan.Load()
	if cut.Load() || limit > 0 && int64(n) > limit {
		p.lost.Add(1)
		return false
	}
	p.passed.Add(1)
	return true
}

// up carries datagrams to the broker.
func (p *proxy) up() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := p.front.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || !p.pass(n, &p.cutUp) {
			continue
		}
		if flow := p.flow(from); flow != nil {
			_, _ = flow.Write(b[:n]) // refused while the broker is away: lost, like on a network
		}
	}
}

// flow is the socket that a client's datagrams are passed on from.
func (p *proxy) flow(client netip.AddrPort) *net.UDPConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.flows[client]; f != nil || p.closed {
		return f
	}
	back, err := net.ResolveUDPAddr("udp", p.back.String())
	if err != nil {
		return nil
	}
	f, err := net.DialUDP("udp", nil, back)
	if err != nil {
		return nil
	}
	buffers(f)
	p.flows[client] = f
	p.tasks.Go(func() { p.down(f, client) })
	return f
}

// down carries datagrams back to one client.
func (p *proxy) down(f *net.UDPConn, client netip.AddrPort) {
	b := make([]byte, 1<<16)
	for {
		n, err := f.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || !p.pass(n, &p.cutDown) {
			continue // an error says that the broker was away
		}
		_, _ = p.front.WriteToUDPAddrPort(b[:n], client)
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	for _, f := range p.flows {
		_ = f.Close()
	}
	p.mu.Unlock()
	_ = p.front.Close()
	p.tasks.Wait()
}
