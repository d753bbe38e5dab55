package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxShared bounds the publishers behind Client.Publish: each one has a QUIC stream and two goroutines.
const maxShared = 64

// sharedPublishers are those behind Client.Publish, one for each stream that was published to lately.
type sharedPublishers struct {
	client *Client

	mu     sync.Mutex
	byName map[Stream]*sharedPublisher // guarded by mu
}

type sharedPublisher struct {
	p    *Publisher
	used time.Time // guarded by sharedPublishers.mu
}

func newSharedPublishers(c *Client) *sharedPublishers {
	return &sharedPublishers{client: c, byName: map[Stream]*sharedPublisher{}}
}

// publisher returns the publisher of a stream. If there are too many, the one that was not used for the longest time is
// closed: it still answers what it has taken.
func (s *sharedPublishers) publisher(name Stream) (*Publisher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byName[name]
	if e == nil {
		p, err := s.client.NewPublisher(name, PublisherConfig{})
		if err != nil {
			return nil, err
		}
		e = &sharedPublisher{p: p}
		s.byName[name] = e
		s.evict(name)
	}
	e.used = time.Now()
	return e.p, nil
}

func (s *sharedPublishers) evict(keep Stream) {
	if len(s.byName) <= maxShared {
		return
	}
	var oldest Stream
	var e *sharedPublisher
	for name, o := range s.byName {
		if name != keep && (e == nil || o.used.Before(e.used)) {
			oldest, e = name, o
		}
	}
	delete(s.byName, oldest)
	s.client.background(func() {
		// The failures were told to those who published.
		_ = e.p.Close(s.client.life)
	})
}

// Publish sends one record and waits for the answer. Calls at the same time share batches. If ctx ends first the
// record may still be stored.
func (c *Client) Publish(ctx context.Context, s Stream, m Message) (Receipt, error) {
	for {
		p, err := c.shared.publisher(s)
		if err != nil {
			return Receipt{}, err
		}
		pending, err := p.Publish(ctx, m)
		if errors.Is(err, ErrClosed) && c.life.Err() == nil {
			continue // it was closed to make place for another stream
		}
		if err != nil {
			return Receipt{}, err
		}
		return pending.Wait(ctx)
	}
}
