package client

import (
	"context"
	"sync"
	"time"

	"felix.dev/felix/broker/wire"
)

// routingAge is how old the number of shards may be that a publisher computes with. Shards are added to a stream by
// hand, and rarely; until a publisher has noticed, a batch may hold records of keys that have a new shard.
const routingAge = 30 * time.Second

// routing is how a publisher finds the shard of a key.
type routing struct {
	Shards
	// known is false if the broker cannot be asked. Then one key at a time is sent under its own name, and the broker
	// finds the shard.
	known bool
	asked time.Time
}

// shard is where a message goes. It is only right if the routing is known, or the message has no key.
func (r *routing) shard(m *Message) uint32 {
	return wire.ShardOf(m.Key, m.keyed(), r.Count, r.Routing)
}

// routes remembers the routing of streams for all publishers of a client.
type routes struct {
	mu     sync.Mutex
	byName map[Stream]*routing // guarded by mu
}

func newRoutes() *routes { return &routes{byName: map[Stream]*routing{}} }

// routing returns what is known of a stream, and asks for it if that is too old. Callers that come at the same time may
// ask twice, which does no harm.
func (c *Client) routing(ctx context.Context, s Stream) (*routing, error) {
	c.routes.mu.Lock()
	r := c.routes.byName[s]
	c.routes.mu.Unlock()
	if r != nil && time.Since(r.asked) < routingAge {
		return r, nil
	}
	shards, err := c.Shards(ctx, s)
	switch {
	case isA[*UnsupportedError](err):
		r = &routing{Shards: Shards{Count: 1}, asked: time.Now()}
	case err != nil:
		return nil, err
	default:
		r = &routing{Shards: shards, known: true, asked: time.Now()}
	}
	c.routes.mu.Lock()
	c.routes.byName[s] = r
	c.routes.mu.Unlock()
	return r, nil
}

// findRouting asks for the stream's shards. The lock is held, and released while the broker is asked.
func (p *Publisher) findRouting(ctx context.Context) error {
	p.mu.Unlock()
	r, err := p.client.routing(ctx, p.stream)
	p.mu.Lock()
	switch {
	case err != nil:
		return err
	case p.closed:
		return ErrClosed
	case !r.known && p.cfg.Idempotent:
		return &UnsupportedError{What: "stream_shards, which an idempotent publisher of keyed records needs"}
	}
	p.useRouting(r)
	return nil
}

// useRouting changes the routing. What was begun under another one is not added to any more. The lock is held.
func (p *Publisher) useRouting(r *routing) {
	if p.routing != nil && p.routing.Shards != r.Shards {
		for _, l := range p.lanes {
			for i, b := range l.open {
				if b != nil {
					b.full = true
					l.open[i] = nil
				}
			}
			l.rouse()
		}
	}
	p.routing = r
}

// refreshRouting looks whether the stream has more shards by now, in the background. The lock is held.
func (p *Publisher) refreshRouting(now time.Time) {
	if p.refreshing || p.closed || now.Sub(p.routing.asked) < routingAge {
		return
	}
	p.refreshing = true
	p.running.Go(func() {
		r, err := p.client.routing(p.life, p.stream)
		if err != nil {
			if p.life.Err() == nil {
				p.client.log.Warn("asking for the shards of a stream failed; the last answer is used on",
					"stream", p.stream.String(), "error", err)
			}
			r = nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refreshing = false
		if r == nil {
			again := *p.routing
			again.asked = time.Now() // not at once
			r = &again
		}
		if r.known || !p.cfg.Idempotent {
			p.useRouting(r)
		}
	})
}
