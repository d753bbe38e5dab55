package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"felix.dev/felix/broker/wire"
)

// PublisherConfig shapes a Publisher. The zero value has every batch answered and sends as soon as it can.
type PublisherConfig struct {
	// Linger is how long a batch that is not full waits for more records. 0: it is sent as soon as the write before
	// it is done, so that batches grow by themselves under load and nothing waits without it.
	Linger time.Duration
	// MaxBatchRecords and MaxBatchBytes bound a batch. 0: 64 records, 64 KiB. A larger record goes alone.
	MaxBatchRecords int
	MaxBatchBytes   int
	// MaxInflightBytes and MaxInflight bound what waits to be sent or answered, in bytes and in records; Publish
	// waits for room. 0: 4 MiB, 65,536 records.
	MaxInflightBytes int
	MaxInflight      int
	// Unacked publishes without an answer: a record counts as done when it is handed to QUIC, whose flow control
	// then makes Publish wait. The broker may drop records under load and does not say so.
	Unacked bool
	// Idempotent makes the broker recognise a batch that is sent again, so that the publisher can send again after a
	// lost connection without a repeat in the stream. Not together with Unacked.
	Idempotent bool
	// AtLeastOnce sends again what was not answered when the connection was lost, and what the broker refused for
	// now. Records may be repeated and change their order. Not together with Unacked; Idempotent includes it.
	AtLeastOnce bool
}

// Defaults of PublisherConfig.
const (
	DefaultMaxBatchRecords  = 64
	DefaultMaxBatchBytes    = 64 << 10
	DefaultMaxInflightBytes = 4 << 20
	DefaultMaxInflight      = 64 << 10
)

// Validate reports everything that is wrong with the configuration. A zero value in a field with a default is fine.
func (c *PublisherConfig) Validate() error {
	var errs []error
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"records of a batch", c.MaxBatchRecords, 1 << 20},
		{"bytes of a batch", c.MaxBatchBytes, wire.MaxPayload / 2},
		{"bytes in flight", c.MaxInflightBytes, 1 << 30},
		{"records in flight", c.MaxInflight, 1 << 30},
	} {
		if f.value < 0 || f.value > f.max {
			errs = append(errs, fmt.Errorf("maximum %s is %d, it must be between 1 and %d", f.name, f.value, f.max))
		}
	}
	if c.Linger < 0 || c.Linger > time.Minute {
		errs = append(errs, fmt.Errorf("linger %v is not between 0 and one minute", c.Linger))
	}
	if c.Unacked && (c.Idempotent || c.AtLeastOnce) {
		errs = append(errs, errors.New("an unacked publisher cannot be idempotent or send again"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("felix: publisher: %w", err)
	}
	return nil
}

func (c *PublisherConfig) withDefaults() PublisherConfig {
	f := *c
	setDefault(&f.MaxBatchRecords, DefaultMaxBatchRecords)
	setDefault(&f.MaxBatchBytes, DefaultMaxBatchBytes)
	setDefault(&f.MaxInflightBytes, DefaultMaxInflightBytes)
	setDefault(&f.MaxInflight, DefaultMaxInflight)
	return f
}

// resends says that a batch may be sent more than once.
func (c *PublisherConfig) resends() bool { return c.Idempotent || c.AtLeastOnce }

// Publisher sends records to one stream, in the order of Publish for each shard. All methods are safe for concurrent
// use.
//
// Records are gathered into batches, and a batch travels as one frame to one shard. The shard of a key is computed
// here, so records with different keys of one shard share a batch, and a stream with one shard needs no key on the
// wire at all. Only if the broker cannot be asked for the number of shards, a batch holds records of one key.
type Publisher struct {
	client *Client
	cfg    PublisherConfig // with defaults
	stream Stream
	// The names as they are on the wire.
	tenant, namespace, name []byte

	// life is the publisher's own lifetime: it ends when what is left is given up. It is no caller's context.
	life    context.Context
	giveUp  context.CancelFunc
	running sync.WaitGroup // the lanes

	mu sync.Mutex
	// All that follows, and the state of the lanes, is guarded by mu.
	closed  bool // nothing is taken any more
	lanes   []*lane
	budget  budget
	routing *routing // nil until the first key
	// refreshing says that the broker is being asked for the routing again.
	refreshing bool
	flushing   int         // Flush calls that wait: nothing lingers
	firstErr   error       // since the last Flush
	free       [][]byte    // buffers for records
	expiry     *time.Timer // nil until the first batch
	armed      bool        // expiry will fire
}

// NewPublisher makes a publisher for a stream. It does not wait for the broker: what is wrong with the stream is told
// by the first publish.
func (c *Client) NewPublisher(s Stream, cfg PublisherConfig) (*Publisher, error) {
	if err := errors.Join(s.validate(), cfg.Validate()); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := &Publisher{
		client: c, cfg: cfg, stream: s,
		tenant: []byte(c.cfg.Tenant), namespace: []byte(s.Namespace), name: []byte(s.Name),
		budget: budget{maxBytes: cfg.MaxInflightBytes, maxRecords: cfg.MaxInflight},
	}
	p.life, p.giveUp = context.WithCancel(context.Background())
	if !c.adoptPublisher(p) {
		p.giveUp()
		return nil, ErrClosed
	}
	return p, nil
}

// Publish takes a record over and returns before it is sent; the outcome is in the Pending. It waits for room in the
// publisher's window, as long as ctx allows.
func (p *Publisher) Publish(ctx context.Context, m Message) (*Pending, error) {
	if err := p.checkSize(&m); err != nil {
		return nil, err
	}
	size := recordSize(&m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if m.keyed() && p.routing == nil {
		if err := p.findRouting(ctx); err != nil {
			return nil, err
		}
	}
	if !p.budget.take(size) {
		if err := p.waitForRoom(ctx, size); err != nil {
			return nil, err
		}
	}
	return p.laneOf(&m).add(&m), nil
}

// recordSize is what a record costs: its payload and the length in front of it.
func recordSize(m *Message) int { return 4 + len(m.Payload) }

// checkSize refuses what cannot fit a frame.
func (p *Publisher) checkSize(m *Message) error {
	const around = 64 // the fixed fields of the frame
	limit := min(wire.MaxRecord, wire.MaxPayload-around-len(p.tenant)-len(p.namespace)-len(p.name)-len(m.Key))
	if len(m.Payload) > limit || len(m.Key) > maxNameLen {
		return &Error{
			Code: wire.CodeInvalidRequest, Retry: wire.RetryFatal,
			Message: fmt.Sprintf("a record of %d bytes with a key of %d bytes is too large: at most %d and %d are possible",
				len(m.Payload), len(m.Key), limit, maxNameLen),
		}
	}
	return nil
}

// waitForRoom waits until the record is let in. The lock is held, and released while it waits.
func (p *Publisher) waitForRoom(ctx context.Context, size int) error {
	w := p.budget.wait(size)
	for _, l := range p.lanes {
		l.rouse() // to linger on would only keep the room occupied
	}
	p.mu.Unlock()
	var err error
	select {
	case <-w.granted:
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.life.Done():
		err = ErrClosed
	}
	p.mu.Lock()
	if err == nil && p.closed {
		err = ErrClosed
	}
	if err != nil {
		p.budget.giveUp(w)
	}
	return err
}

// laneOf finds the lane for a message: one for all, but one for each shard if idempotent, as sequences are counted by
// shard and each shard has a leader of its own. The lock is held.
func (p *Publisher) laneOf(m *Message) *lane {
	shard := uint32(0)
	if p.cfg.Idempotent && m.keyed() {
		shard = p.routing.shard(m)
	}
	for _, l := range p.lanes {
		if l.shard == shard {
			return l
		}
	}
	l := newLane(p, shard)
	p.lanes = append(p.lanes, l)
	p.running.Go(l.run)
	return l
}

// Flush sends what is waiting and waits until everything that was published before the call is answered. It returns
// the first failure of a publish since the last Flush.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var waiting []*batch
	for _, l := range p.lanes {
		for _, b := range l.queue {
			if b != nil {
				waiting = append(waiting, b)
			}
		}
	}
	p.flushing++
	defer func() { p.flushing-- }()
	for _, l := range p.lanes {
		l.rouse()
	}
	p.mu.Unlock()
	var err error
	for _, b := range waiting {
		select {
		case <-b.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.mu.Lock()
	if err == nil {
		err, p.firstErr = p.firstErr, nil
	}
	return err
}

// Close flushes and ends the publisher. If ctx ends first, what is not answered fails. It returns what Flush returns.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.Flush(ctx)
	if ctx.Err() == nil {
		// Everything is answered, so the lanes end by themselves; the context still bounds it.
		stop := context.AfterFunc(ctx, p.giveUp)
		p.mu.Lock()
		for _, l := range p.lanes {
			l.rouse()
		}
		p.mu.Unlock()
		p.running.Wait()
		stop()
	}
	p.abort()
	return err
}

// abort ends the publisher at once. What is not answered fails.
func (p *Publisher) abort() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.giveUp()
	p.running.Wait()
	p.mu.Lock()
	if p.expiry != nil {
		p.expiry.Stop()
	}
	p.mu.Unlock()
	p.client.forgetPublisher(p)
}
