package admin

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// addressLimit closes connections of an address that has as many as it may have. The
// port also answers health probes: who opens connections and sends nothing must not
// take the places that those need.
type addressLimit struct {
	net.Listener
	most int

	mu   sync.Mutex
	open map[netip.Addr]int
}

func limitAddresses(ln net.Listener, most int) *addressLimit {
	return &addressLimit{Listener: ln, most: most, open: make(map[netip.Addr]int)}
}

// Accept waits for a connection whose address has room for it.
func (l *addressLimit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := remoteAddr(c)
		if l.enter(addr) {
			return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(addr) })}, nil
		}
		_ = c.Close() // nothing was said on it
	}
}

func (l *addressLimit) enter(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[a] >= l.most {
		return false
	}
	l.open[a]++
	return true
}

func (l *addressLimit) leave(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[a]--; l.open[a] <= 0 {
		delete(l.open, a)
	}
}

// remoteAddr is the peer without its port; the zero address if there is none.
func remoteAddr(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close gives the place back.
func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// unheard are connections on which no request has come yet. A shutdown waits for
// them as if they had one, so that any stranger could hold it up.
type unheard struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func newUnheard() *unheard { return &unheard{conns: make(map[net.Conn]struct{})} }

// state is http.Server's ConnState.
func (u *unheard) state(c net.Conn, s http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case s != http.StateNew:
		delete(u.conns, c)
	case u.closed:
		_ = c.Close() // nobody waits for it
	default:
		u.conns[c] = struct{}{}
	}
}

// close ends them, and those that come.
func (u *unheard) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close() // nobody waits for it
	}
}
