package broker

import (
	"context"
	"errors"
)

// Shutdown ends the broker in the order that the package comment gives. ctx bounds
// how long it waits for publishes and readers; what has to be closed is closed all
// the same. A second call waits for the first and returns the same error.
func (b *Broker) Shutdown(ctx context.Context) error {
	b.once.Do(func() {
		b.shutdown = b.stop(ctx)
		close(b.down)
		b.tasks.Wait()
		if b.lock != nil {
			b.shutdown = errors.Join(b.shutdown, b.lock.release())
		}
	})
	return b.shutdown
}

// stop undoes what was begun, as far as it was begun.
func (b *Broker) stop(ctx context.Context) error {
	var errs []error
	b.serving.Store(false)
	if b.server != nil {
		errs = append(errs, b.server.Drain(ctx))
	}
	if b.alone != nil {
		errs = append(errs, b.alone.beginShutdown(ctx))
	}
	if b.member != nil {
		errs = append(errs, b.member.beginShutdown(ctx))
	}
	if b.server != nil {
		b.server.Close(ctx)
	}
	if b.engine != nil {
		b.engine.Close()
	}
	if b.alone != nil {
		errs = append(errs, b.alone.finishShutdown())
	}
	if b.member != nil {
		errs = append(errs, b.member.finishShutdown(ctx))
	}
	if b.wal != nil {
		errs = append(errs, b.wal.Close())
	}
	b.stopAdmin()
	return errors.Join(errs...)
}
