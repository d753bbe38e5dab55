package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// goodbye bounds how long Close tries to say so to a peer that takes no bytes.
	goodbye = 100 * time.Millisecond
	// drainFor and drainBytes bound reading on after a handshake that failed: a socket
	// that is closed with bytes unread takes the alert back that says why.
	drainFor   = time.Second
	drainBytes = 64 << 10
)

// Conn is a connection between two brokers that know who the other is. Reads and
// writes have no deadline but what its user sets. A host that is gone ends it: after
// Config.DeadAfter if there are bytes on the way to it, else within half a minute.
type Conn struct {
	net.Conn // secure
	// Node is the other side. Kind and Target are those of the hello.
	Node   string
	Kind   Kind
	Target string

	incoming bool
	secure   *tls.Conn
	socket   *socket
	ctx      context.Context
	cancel   context.CancelFunc
	forget   func()
	once     sync.Once
}

// Close closes the connection. It does not wait for a peer that takes no bytes.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		c.socket.closing.Store(true)
		c.cancel()
		err = c.Conn.Close()
		c.forget()
	})
	// What closing cannot say anymore, nobody would hear.
	if errors.Is(err, net.ErrClosed) || isTimeout(err) {
		return nil
	}
	return err
}

// abort ends what the connection's users wait for; they close it then.
func (c *Conn) abort() {
	c.cancel()
	_ = c.socket.Close() // whoever uses the connection gets an error either way
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// socket is what is below TLS.
type socket struct {
	net.Conn
	closing atomic.Bool
}

// SetWriteDeadline cuts the time short that TLS allows itself for its goodbye: it
// would hold up whoever closes a connection whose peer hangs.
func (s *socket) SetWriteDeadline(at time.Time) error {
	if latest := time.Now().Add(goodbye); s.closing.Load() && at.After(latest) {
		at = latest
	}
	return s.Conn.SetWriteDeadline(at)
}

// part closes a socket after the last words to the other side were written.
func (s *socket) part(secure *tls.Conn) {
	s.closing.Store(true)
	_ = secure.CloseWrite() // what follows closes it
	s.drain()
}

// drain closes a socket in a way that lets the other side read what was sent.
func (s *socket) drain() {
	if tcp, ok := s.Conn.(*net.TCPConn); ok && tcp.CloseWrite() == nil && tcp.SetReadDeadline(time.Now().Add(drainFor)) == nil {
		_, _ = io.CopyN(io.Discard, tcp, drainBytes)
	}
	_ = s.Close()
}
