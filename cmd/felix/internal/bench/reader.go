package bench

import (
	"context"
	"errors"

	"felix.dev/felix/client"
)

// batches is what a reader reads: a *client.Subscription.
type batches interface {
	NextBatch(ctx context.Context) ([]client.Event, error)
	Close() error
}

// reader is a subscription and its account.
type reader struct {
	tally   *tally
	window  *window
	sub     batches
	stalled bool // it is not read during the measured part
	started bool
}

// run reads until the subscription ends. Being closed is no error.
func (r *reader) run(ctx context.Context) error {
	for {
		events, err := r.sub.NextBatch(ctx)
		if err != nil {
			if errors.Is(err, client.ErrClosed) || ctx.Err() != nil {
				return nil //nolint:nilerr // the session has closed it
			}
			return r.tally.end(err)
		}
		r.tally.take(events)
		r.window.delivered()
	}
}
