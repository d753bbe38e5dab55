package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"felix.dev/felix/client"
)

// window is how many publishes a publisher has in flight at most. It publishes as many at once, every so often: a
// machine that is kept busy by its publishers would show how busy it is.
const (
	window = 64
	every  = 50 * time.Millisecond
)

// errEnough ends the load.
var errEnough = errors.New("enough")

// numberer publishes numbers from 1, each once, as an idempotent producer.
type numberer struct {
	name   string
	source uint32
	size   int
	pub    *client.Publisher

	mu sync.Mutex
	// All guarded by mu.
	published, acked uint64
	failed           uint64
	// first is when the first record that was published after since was acknowledged.
	since, first time.Time
	// last is when a record was acknowledged last, longest the longest time between two.
	last    time.Time
	longest time.Duration
}

func (p *numberer) open(c *client.Client, stream client.Stream) (err error) {
	p.pub, err = c.NewPublisher(stream, client.PublisherConfig{Idempotent: true, MaxBatchRecords: 1, MaxInflight: window})
	return err
}

// sentNumber is a record on its way.
type sentNumber struct {
	at      time.Time
	pending *client.Pending
}

// run publishes until stop is closed, and waits for all answers.
func (p *numberer) run(ctx context.Context, stop <-chan struct{}) error {
	under := make(chan sentNumber, 2*window)
	var answers sync.WaitGroup
	answers.Go(func() { p.take(ctx, under) })
	defer answers.Wait()
	defer close(under)
	tick := time.NewTicker(every)
	defer tick.Stop()
	payload := make([]byte, p.size)
	for n := uint64(1); ; n++ {
		if n%window == 1 {
			select {
			case <-tick.C:
			case <-stop:
				return p.pub.Flush(ctx)
			case <-ctx.Done():
				return nil
			}
		}
		binary.BigEndian.PutUint64(payload, uint64(p.source))
		binary.BigEndian.PutUint64(payload[minSize:], n)
		pending, err := p.pub.Publish(ctx, client.Message{Payload: payload})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s: %w", p.name, err)
		}
		p.mu.Lock()
		p.published = n
		p.mu.Unlock()
		under <- sentNumber{time.Now(), pending}
	}
}

// take counts answers.
func (p *numberer) take(ctx context.Context, under <-chan sentNumber) {
	for s := range under {
		_, err := s.pending.Wait(ctx)
		now := time.Now()
		p.mu.Lock()
		if err != nil {
			p.failed++
		} else {
			p.acked++
			if !p.last.IsZero() {
				p.longest = max(p.longest, now.Sub(p.last))
			}
			p.last = now
			if p.first.IsZero() && s.at.After(p.since) {
				p.first = now
			}
		}
		p.mu.Unlock()
	}
}

// ackedSince is how long after at a record that was published later was acknowledged first; 0: none was yet.
func (p *numberer) ackedSince(at time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.Equal(at) {
		p.since, p.first = at, time.Time{}
	}
	if p.first.IsZero() {
		return 0
	}
	return p.first.Sub(at)
}

func (p *numberer) outstanding() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.published - p.acked - p.failed)
}

func (p *numberer) counts() (published, acked, failed uint64, longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published, p.acked, p.failed, p.longest
}

// counter reads what the publishers publish and counts what comes twice, out of order or not at all.
type counter struct {
	name       string
	publishers []*numberer
	sub        *client.Subscription

	mu sync.Mutex
	// All guarded by mu.
	next                        map[uint32]uint64 // by source: the number that is due, if it is not 1
	received, repeated, missing uint64
	moves                       int
}

func (c *counter) subscribe(ctx context.Context, from *client.Client, stream client.Stream) (err error) {
	c.next = map[uint32]uint64{}
	c.sub, err = from.Subscribe(ctx, stream, client.SubscribeConfig{
		Start: client.Earliest(),
		OnResumed: func(client.Resumed) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.moves++
		},
	})
	return err
}

func (c *counter) close() { _ = c.sub.Close() } // it never fails

// readTo reads until everything is there that was acknowledged, or ctx ends.
func (c *counter) readTo(ctx context.Context, publishers []*numberer) error {
	for !c.has(publishers) {
		events, err := c.sub.NextBatch(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.mu.Lock()
		for _, e := range events {
			c.take(e.Payload)
		}
		c.mu.Unlock()
	}
	return nil
}

// take counts one record; mu is held.
func (c *counter) take(payload []byte) {
	if len(payload) < 2*minSize {
		return
	}
	source, n := uint32(binary.BigEndian.Uint64(payload)), binary.BigEndian.Uint64(payload[minSize:])
	due := max(c.next[source], 1)
	c.received++
	if n < due {
		c.repeated++
		return
	}
	c.missing += n - due
	c.next[source] = n + 1
}

// has says that the last record that was acknowledged of each publisher has come.
func (c *counter) has(publishers []*numberer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range publishers {
		_, acked, failed, _ := p.counts()
		if c.next[p.source] <= acked+failed {
			return false
		}
	}
	return true
}

// lost counts the acknowledged records that have not come, up to the end.
func (c *counter) lost() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.missing
	for _, p := range c.publishers {
		if _, acked, _, _ := p.counts(); max(c.next[p.source], 1) <= acked {
			n += acked + 1 - max(c.next[p.source], 1)
		}
	}
	return n
}
