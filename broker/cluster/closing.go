package cluster

import (
	"context"
	"errors"
	"time"

	"felix.dev/felix/broker/quorum"
)

// grace is how long files that are open are waited for even if whoever closes has no
// time: the next broker on this data directory must not find somebody at work.
const grace = 5 * time.Second

// orderly is ctx, or grace more than it.
func orderly(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(longer, func() { t.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// closeGroup closes a group as ctx allows: without a farewell if it is over. The end
// itself is waited for as long as longer does.
func closeGroup(ctx, longer context.Context, g *quorum.Group) error {
	err := g.Close(ctx)
	if err != nil && ctx.Err() != nil {
		err = g.Close(longer)
	}
	if errors.Is(err, quorum.ErrClosed) {
		return nil
	}
	return err
}
