package cluster

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"felix.dev/felix/broker/catalog"
)

// spreadTimeout is how long one broker is waited for: one that is away learns later.
const spreadTimeout = 2 * time.Second

// syncRequest asks a broker to answer once it has the catalog up to an index.
type syncRequest struct {
	Index uint64 `json:"index"`
}

// Spread returns once the other brokers serve the catalog as it is here: what was
// changed can then be used through any of them. It gives up on those that do not
// answer within two seconds, or when ctx ends.
func (c *Cluster) Spread(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, spreadTimeout)
	defer cancel()
	index, _ := c.machine.progress()
	var asked sync.WaitGroup
	for _, b := range c.State().Brokers() {
		if b.NodeID != c.cfg.Self.Node {
			asked.Go(func() {
				if err := c.cfg.Peer.Call(ctx, b.NodeID, methodSync, syncRequest{Index: index}, nil); err != nil {
					c.cfg.Log.Debug("a broker has not said that it has the newest catalog", "broker", b.NodeID, "error", err)
				}
			})
		}
	}
	asked.Wait()
}

// onSync answers once the catalog here is as new as another broker's.
func (c *Cluster) onSync(ctx context.Context, _ string, body json.RawMessage) (any, error) {
	var req syncRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, refuse(CodeInvalid, "sync: %v", err)
	}
	if err := c.awaitCatalog(ctx, req.Index); err != nil {
		return nil, err
	}
	if c.cfg.Served == nil {
		return struct{}{}, nil
	}
	return struct{}{}, c.cfg.Served(ctx)
}

// awaitCatalog waits until the catalog here has an entry of the metadata group.
func (c *Cluster) awaitCatalog(ctx context.Context, index uint64) error {
	for {
		at, more := c.machine.progress()
		if at >= index {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return later(CodeNoLeader, "the catalog here is behind: %v", ctx.Err())
		case <-c.ended:
			return c.Err()
		}
	}
}

// pushCommits has the followers of the metadata group hear at once that an entry is
// committed, which raft tells them with the next entry or after Timings.Commit: one
// empty entry for all changes that came while the last was on its way.
func (c *Cluster) pushCommits(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.committed:
		}
		meta, here := c.Group(catalog.MetadataGroup)
		if !here || !meta.State().Leading {
			continue
		}
		wait, cancel := context.WithTimeout(ctx, spreadTimeout)
		_ = meta.Ready(wait) // if it fails there is another leader, who tells them
		cancel()
	}
}
