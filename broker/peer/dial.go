package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/peer/pki"
)

// Dial opens a connection to a node, at the address that Config.Resolve gives now.
// target is for the handler of the kind, at most 1024 bytes. Errors are
// *RefusedError, or wrap ErrUnreachable, ErrCertificate, ErrProtocol or ErrClosed;
// nothing was sent then.
func (t *Transport) Dial(ctx context.Context, node string, kind Kind, target string) (*Conn, error) {
	c, err := t.dialNode(ctx, node, kind, target)
	if err != nil {
		return nil, fmt.Errorf("peer: node %s: %w", node, err)
	}
	return c, nil
}

// DialAddr is Dial for whoever is at addr: Conn.Node says who.
func (t *Transport) DialAddr(ctx context.Context, addr string, kind Kind, target string) (*Conn, error) {
	c, err := t.dial(ctx, addr, "", kind, target)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	return c, nil
}

func (t *Transport) dialNode(ctx context.Context, node string, kind Kind, target string) (*Conn, error) {
	addr, ok := t.cfg.Resolve(node)
	if !ok {
		return nil, fmt.Errorf("%w: it has no address", ErrUnreachable)
	}
	return t.dial(ctx, addr, node, kind, target)
}

func (t *Transport) dial(ctx context.Context, addr, node string, kind Kind, target string) (*Conn, error) {
	if len(target) > maxTarget || len(node) > maxName {
		return nil, fmt.Errorf("%w: a target of %d bytes and a node of %d are too long", ErrProtocol, len(target), len(node))
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()

	c, err := t.approach(ctx, addr, hello{kind: kind, cluster: t.cfg.Cluster(), from: t.cfg.NodeID, to: node, target: target})
	var refused *RefusedError
	switch {
	case err == nil:
		return c, nil
	case t.ctx.Err() != nil:
		return nil, ErrClosed
	case errors.As(err, &refused):
		return nil, err
	case ctx.Err() != nil:
		// Whatever it broke off is a consequence.
		return nil, fmt.Errorf("%s: %w: %w", addr, ErrUnreachable, context.Cause(ctx))
	}
	return nil, fmt.Errorf("%s: %w", addr, classify(err))
}

// approach dials, says hello and hears the answer.
func (t *Transport) approach(ctx context.Context, addr string, h hello) (*Conn, error) {
	raw, err := t.cfg.DialNet(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s := &socket{Conn: raw}
	c, err := t.sayHello(ctx, s, addr, h)
	if err != nil {
		_ = s.Close() // err says why
		return nil, err
	}
	return c, nil
}

func (t *Transport) sayHello(ctx context.Context, s *socket, addr string, h hello) (*Conn, error) {
	secure := tls.Client(s, t.tlsConfig(x509.ExtKeyUsageServerAuth, h.to))
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // reading and writing fail then
	defer stop()
	_, writeErr := secure.Write(h.bytes())
	// Why it could not be written may be there to read.
	a, err := readAnswer(secure)
	if err != nil {
		return nil, errors.Join(err, writeErr)
	}
	refused := func(reason Reason, message string) error {
		return &RefusedError{Reason: reason, Addr: addr, Node: a.node, Cluster: a.cluster, Message: message}
	}
	if a.reason != 0 {
		return nil, refused(a.reason, a.message)
	}
	if h.to != "" && a.node != h.to {
		return nil, refused(RefusedNode, fmt.Sprintf("node %q is there", a.node))
	}
	if leaf := secure.ConnectionState().PeerCertificates[0]; !pki.Names(leaf, a.node) {
		return nil, refused(RefusedCertificate, fmt.Sprintf("it names %v %v, the answer is from %q", leaf.DNSNames, leaf.URIs, a.node))
	}
	if ours := t.cfg.Cluster(); ours != "" && a.cluster != "" && a.cluster != ours {
		return nil, refused(RefusedCluster, fmt.Sprintf("this is %q, there is %q", ours, a.cluster))
	}
	c := &Conn{Conn: secure, secure: secure, Node: a.node, Kind: h.kind, Target: h.target, socket: s}
	if _, err := t.open(c); err != nil {
		return nil, err
	}
	if !stop() {
		_ = c.Close() // the context closed the socket
		return nil, ctx.Err()
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
