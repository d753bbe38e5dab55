package peer

import (
	"context"
	"encoding/json"
	"errors"
	"net"
)

const maxFrame = 64 << 20

var errSkeleton = errors.New("peer: not there yet")

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// Transport is one broker's end of all connections with its peers.
type Transport struct{ cfg Config }

// Listen binds the address. Nothing is accepted before Serve, but peers may connect
// and wait. The context bounds binding only.
func Listen(ctx context.Context, cfg Config) (*Transport, error) { return nil, errSkeleton }

// Addr is where the transport listens.
func (t *Transport) Addr() net.Addr { return nil }

// Handle has h take the incoming connections of a kind. h owns the connection: it
// closes it, or hands it on to somebody who does; until then it counts. The context ends with the
// connection's Close and with the transport's; h must return then, Close waits for it.
func (t *Transport) Handle(kind Kind, h func(ctx context.Context, c *Conn)) {}

// HandleCall has h answer the calls of a method. from is the calling node. The
// context ends when the caller's time does or when it goes away. See Error.
func (t *Transport) HandleCall(method string, h func(ctx context.Context, from string, body json.RawMessage) (any, error)) {
}

// Serve begins to accept, and returns. What is handled later is refused until then.
func (t *Transport) Serve() {}

// Close closes the listener and every connection, incoming and outgoing, and waits
// for what runs here. It is safe to call twice.
func (t *Transport) Close() error { return nil }

// Dial opens a connection to a node, asking Config.Resolve where it is. target is for the handler
// of the kind, at most 1024 bytes. Errors are *RefusedError or wrap ErrUnreachable,
// ErrCertificate, ErrProtocol or ErrClosed; nothing was sent then.
func (t *Transport) Dial(ctx context.Context, node string, kind Kind, target string) (*Conn, error) {
	return nil, errSkeleton
}

// DialAddr is Dial for whoever is at addr: Conn.Node says who.
func (t *Transport) DialAddr(ctx context.Context, addr string, kind Kind, target string) (*Conn, error) {
	return nil, errSkeleton
}

// Call sends req (as JSON) to a node and decodes the answer into resp (nil: it is
// dropped). An answer that is an error is an *Error. Without an answer the error is
// that of Dial, or wraps ErrUnanswered or ErrTooLarge.
func (t *Transport) Call(ctx context.Context, node, method string, req, resp any) error {
	return errSkeleton
}

// CallAddr is Call for whoever is at addr.
func (t *Transport) CallAddr(ctx context.Context, addr, method string, req, resp any) error {
	return errSkeleton
}

// Conn is a connection between two brokers that know who the other is.
type Conn struct {
	net.Conn
	// Node is the other side; Kind and Target are those of the hello.
	Node   string
	Kind   Kind
	Target string
}
