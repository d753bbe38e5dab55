package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"felix.dev/felix/broker/peer/pki"
)

// acceptPause is how long accepting rests after it failed: descriptors may be free then.
const acceptPause = 50 * time.Millisecond

// accept takes connections until the transport is closed.
func (t *Transport) accept() {
	for {
		raw, err := t.listener.Accept()
		switch {
		case err == nil:
			s := &socket{Conn: raw}
			if !t.greet(s) || !t.start(func() { t.receive(s) }) {
				_ = s.Close() // the transport is closed
			}
		case t.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default:
			t.cfg.Log.Warn("peer connection not accepted", slog.Any("error", err))
			select {
			case <-t.ctx.Done():
				return
			case <-time.After(acceptPause):
			}
		}
	}
}

// greet counts a connection that has not said who it is. There is always room for one
// more: that which has taken longest is closed. So those that say nothing cannot keep
// those out that do.
func (t *Transport) greet(s *socket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if len(t.greeting) >= t.cfg.MaxHandshakes {
		_ = t.greeting[0].Close() // its handshake fails and reports that
		t.greeting = slices.Delete(t.greeting, 0, 1)
	}
	t.greeting = append(t.greeting, s)
	return true
}

func (t *Transport) greeted(s *socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.greeting, s); i >= 0 {
		t.greeting = slices.Delete(t.greeting, i, i+1)
	}
}

// receive brings an incoming connection to its handler.
func (t *Transport) receive(s *socket) {
	c, err := t.welcome(s)
	t.greeted(s)
	if err != nil {
		if t.ctx.Err() == nil {
			t.cfg.Log.Warn("peer connection refused", slog.String("from", s.RemoteAddr().String()), slog.Any("error", err))
		}
		return
	}
	t.handler(c.Kind)(c.ctx, c)
}

// welcome does the handshake, reads the hello and answers it. Without an error the
// connection is open; with one it is closed.
func (t *Transport) welcome(s *socket) (*Conn, error) {
	if err := s.SetDeadline(time.Now().Add(t.cfg.HandshakeTimeout)); err != nil {
		_ = s.Close() // err says it
		return nil, err
	}
	secure := tls.Server(s, t.tlsConfig(x509.ExtKeyUsageClientAuth, ""))
	if err := secure.HandshakeContext(t.ctx); err != nil {
		s.drain()
		return nil, err
	}
	h, err := readHello(secure)
	if err != nil {
		reason := RefusedHello
		if _, ok := errors.AsType[versionError](err); ok {
			reason = RefusedVersion
		}
		if errors.Is(err, ErrProtocol) {
			t.refuse(s, secure, reason, err)
		}
		_ = s.Close() // err says why
		return nil, fmt.Errorf("hello: %w", err)
	}
	c := &Conn{Conn: secure, secure: secure, Node: h.from, Kind: h.kind, Target: h.target, incoming: true, socket: s}
	reason, why := t.check(&h, secure)
	if reason == 0 {
		reason, why = t.open(c)
	}
	if reason != 0 {
		t.refuse(s, secure, reason, why)
		return nil, fmt.Errorf("node %q, %v: %v: %w", h.from, h.kind, reason, why)
	}
	ok := answer{node: t.cfg.NodeID, cluster: t.cfg.Cluster()}
	if _, err := secure.Write(ok.bytes()); err != nil {
		c.abort()
		return nil, errors.Join(fmt.Errorf("answer to the hello: %w", err), c.Close())
	}
	if err := secure.SetDeadline(time.Time{}); err != nil {
		c.abort()
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// check says why a hello is refused for what it says.
func (t *Transport) check(h *hello, secure *tls.Conn) (Reason, error) {
	if ours := t.cfg.Cluster(); h.cluster != "" && ours != "" && h.cluster != ours {
		return RefusedCluster, fmt.Errorf("this is %q, the hello says %q", ours, h.cluster)
	}
	if h.to != "" && h.to != t.cfg.NodeID {
		return RefusedNode, fmt.Errorf("this is %q, the hello is to %q", t.cfg.NodeID, h.to)
	}
	// There is one: the handshake demands it.
	if leaf := secure.ConnectionState().PeerCertificates[0]; !pki.Names(leaf, h.from) {
		return RefusedCertificate, fmt.Errorf("it names %v %v, the hello is from %q", leaf.DNSNames, leaf.URIs, h.from)
	}
	return 0, nil
}

// refuse answers a hello with a reason and closes the connection.
func (t *Transport) refuse(s *socket, secure *tls.Conn, reason Reason, why error) {
	a := answer{reason: reason, node: t.cfg.NodeID, cluster: t.cfg.Cluster(), message: clip(why.Error())}
	if _, err := secure.Write(a.bytes()); err != nil {
		t.cfg.Log.Debug("peer did not hear why it was refused", slog.Any("error", err))
	}
	s.part(secure)
}

// clip keeps a message small enough for an answer.
func clip(message string) string {
	const most = 512
	if len(message) > most {
		return message[:most]
	}
	return message
}
