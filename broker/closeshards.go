package broker

import (
	"context"
	"errors"
	"time"

	"felix.dev/felix/broker/stream"
)

const (
	// readersWait is how long the readers of a stream that is deleted may take to come
	// to its end, and reopenWait those of one whose settings change: nobody is served
	// meanwhile.
	readersWait = 30 * time.Second
	reopenWait  = 5 * time.Second

	readerPoll = 5 * time.Millisecond
)

// closeShards closes shards and their logs and waits for their readers, all within
// ctx, as far as there is something to wait for.
func closeShards(ctx context.Context, shards []openShard, reason stream.EndReason) error {
	var errs []error
	for _, k := range shards {
		errs = append(errs, k.Close(ctx, reason))
	}
	return errors.Join(append(errs, closeLogs(ctx, shards))...)
}

// closeLogs closes the logs of closed shards, once their readers are gone or ctx
// is over.
func closeLogs(ctx context.Context, shards []openShard) error {
	awaitReaders(ctx, shards)
	var errs []error
	for _, k := range shards {
		errs = append(errs, k.CloseLog())
	}
	return errors.Join(errs...)
}

// awaitReaders waits until no shard has subscriptions, or for ctx.
func awaitReaders(ctx context.Context, shards []openShard) {
	tick := time.NewTicker(readerPoll)
	defer tick.Stop()
	for _, k := range shards {
		for k.Info().Subscriptions > 0 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}
