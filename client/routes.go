package client

import (
	"context"
	"sync"

	"felix.dev/felix/broker/wire"
)

// routing is how a publisher finds the shard of a key.
type routing struct {
	Shards
	// known is false if the broker cannot be asked. Then one key at a time is sent under its own name, and the broker
	// finds the shard.
	known bool
}

// shard is where a message goes. It is only right if the routing is known, or the message has no key.
func (r *routing) shard(m *Message) uint32 {
	return wire.ShardOf(m.Key, m.keyed(), r.Count, r.Routing)
}

// routes remembers the routing of streams, which never changes.
type routes struct {
	mu     sync.Mutex
	byName map[Stream]*routing // guarded by mu
}

func newRoutes() *routes { return &routes{byName: map[Stream]*routing{}} }

// routing asks once for each stream. Callers that come at the same time may ask twice, which does no harm.
func (c *Client) routing(ctx context.Context, s Stream) (*routing, error) {
	c.routes.mu.Lock()
	r := c.routes.byName[s]
	c.routes.mu.Unlock()
	if r != nil {
		return r, nil
	}
	shards, err := c.Shards(ctx, s)
	switch {
	case isA[*UnsupportedError](err):
		r = &routing{Shards: Shards{Count: 1}}
	case err != nil:
		return nil, err
	default:
		r = &routing{Shards: shards, known: true}
	}
	c.routes.mu.Lock()
	c.routes.byName[s] = r
	c.routes.mu.Unlock()
	return r, nil
}
