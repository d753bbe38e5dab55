package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Transport is one broker's end of all connections with its peers. Safe for
// concurrent use.
type Transport struct {
	cfg      Config
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	calls    callPools
	// largeCalls bounds the memory of incoming calls.
	largeCalls *semaphore.Weighted

	mu       sync.Mutex
	serving  bool
	closed   bool
	handlers map[Kind]func(ctx context.Context, c *Conn)
	methods  map[string]CallHandler
	greeting []*socket // incoming, before their hello; oldest first
	conns    map[*Conn]struct{}
	incoming int            // of conns
	by       map[string]int // incoming, by node
}

// CallHandler answers calls. from is the calling node. The context ends when the caller's time
// does or when it goes away. See Error for what it may return.
type CallHandler func(ctx context.Context, from string, body json.RawMessage) (any, error)

// keepAlive finds a peer whose host is gone, on connections on which nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// Listen binds the address. Peers may connect from now on and wait for Serve. The
// context is for binding only.
func Listen(ctx context.Context, cfg Config) (*Transport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	l, err := (&net.ListenConfig{KeepAliveConfig: keepAlive, Control: deadAfter(cfg.DeadAfter)}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	t := &Transport{
		cfg: cfg, listener: l,
		handlers: map[Kind]func(context.Context, *Conn){}, methods: map[string]CallHandler{},
		conns: map[*Conn]struct{}{}, by: map[string]int{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.largeCalls = semaphore.NewWeighted(largeCalls * int64(cfg.MaxCallBytes+maxMethod+16))
	t.calls.of = map[string]*callPool{}
	t.handlers[KindCall] = t.serveCalls
	return t, nil
}

// Addr is where the transport listens.
func (t *Transport) Addr() net.Addr { return t.listener.Addr() }

// Handle has h take the incoming connections of a kind, other than KindCall; until
// then they are refused. h owns the connection: it closes it, or hands it on to
// somebody who does. The context ends with the connection's Close and with the
// transport's; h must return then, Close waits for it.
func (t *Transport) Handle(kind Kind, h func(ctx context.Context, c *Conn)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind != KindCall {
		t.handlers[kind] = h
	}
}

// HandleCall has h answer the calls of a method; until then they get
// CodeUnknownMethod.
func (t *Transport) HandleCall(method string, h CallHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.methods[method] = h
}

// Serve begins to accept, and returns.
func (t *Transport) Serve() {
	t.mu.Lock()
	again := t.serving
	t.serving = true
	t.mu.Unlock()
	if !again {
		t.start(t.accept)
	}
}

// Close closes the listener and every connection, incoming and outgoing, and waits
// for the handlers and for what else runs here.
func (t *Transport) Close() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	greeting := slices.Clone(t.greeting)
	conns := make([]*Conn, 0, len(t.conns))
	for c := range t.conns {
		conns = append(conns, c)
	}
	t.mu.Unlock()

	var err error
	if first {
		t.cancel()
		err = t.listener.Close()
		for _, s := range greeting {
			_ = s.Close() // its handshake fails, which is what is wanted
		}
		for _, c := range conns {
			c.abort()
		}
		t.calls.close()
	}
	t.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("peer: close: %w", err)
	}
	return nil
}

// start runs f in a goroutine that Close waits for, unless the transport is closed.
func (t *Transport) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running.Go(f)
	return true
}

// open makes a connection one of the transport's, or says why not. Nobody refuses
// what goes out.
func (t *Transport) open(c *Conn) (Reason, error) {
	c.ctx, c.cancel = context.WithCancel(t.ctx)
	c.forget = func() { t.forget(c) }
	t.mu.Lock()
	defer t.mu.Unlock()
	refuse := func(r Reason, err error) (Reason, error) {
		c.cancel()
		return r, err
	}
	if t.closed {
		return refuse(RefusedClosing, ErrClosed)
	}
	if c.incoming {
		if t.handlers[c.Kind] == nil {
			return refuse(RefusedKind, fmt.Errorf("%v", c.Kind))
		}
		if n := t.incoming; n >= t.cfg.MaxConns {
			return refuse(RefusedBusy, fmt.Errorf("there are %d", n))
		}
		if n := t.by[c.Node]; n >= t.cfg.MaxConnsPerPeer {
			return refuse(RefusedBusy, fmt.Errorf("node %s has %d here", c.Node, n))
		}
		t.incoming++
		t.by[c.Node]++
	}
	t.conns[c] = struct{}{}
	return 0, nil
}

func (t *Transport) forget(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.conns[c]; !ok {
		return
	}
	delete(t.conns, c)
	if !c.incoming {
		return
	}
	t.incoming--
	if t.by[c.Node]--; t.by[c.Node] == 0 {
		delete(t.by, c.Node)
	}
}

func (t *Transport) handler(kind Kind) func(context.Context, *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handlers[kind]
}

func (t *Transport) method(name string) CallHandler {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.methods[name]
}
