package client

import (
	"context"
	"errors"
	"time"
)

// PublisherConfig shapes a Publisher. The zero value acks every batch and sends as soon as it can.
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

// Publisher sends records to one stream. All methods are safe for concurrent use.
type Publisher struct{}

// NewPublisher makes a publisher for a stream. It does not wait for the broker.
func (c *Client) NewPublisher(s Stream, cfg PublisherConfig) (*Publisher, error) {
	return nil, errors.ErrUnsupported
}

// Publish hands a record over and returns before it is sent. It waits for room in the publisher's window.
func (p *Publisher) Publish(ctx context.Context, m Message) (*Pending, error) {
	return nil, errors.ErrUnsupported
}

// Flush sends what is waiting and waits until everything published before the call is answered. It returns the first
// failure of a publish since the last Flush.
func (p *Publisher) Flush(ctx context.Context) error { return errors.ErrUnsupported }

// Close flushes and ends the publisher. If ctx ends first, what is not answered fails.
func (p *Publisher) Close(ctx context.Context) error { return errors.ErrUnsupported }

// Pending is a record on its way.
type Pending struct{}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { return nil }

// Wait waits for the outcome.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) { return Receipt{}, errors.ErrUnsupported }
