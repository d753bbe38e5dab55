package demo

import (
	"context"
	"sync"
	"time"
)

// running is publishers and readers at work.
type running struct {
	stop       chan struct{}
	cancel     context.CancelCauseFunc
	publishing sync.WaitGroup
	reading    sync.WaitGroup
	readers    []*counter
	publishers []*numberer
}

// startLoad starts them. Whatever goes wrong with one of them ends all, with the reason as the cause of ctx's end.
func startLoad(ctx context.Context, cancel context.CancelCauseFunc, publishers []*numberer, readers []*counter) *running {
	l := &running{stop: make(chan struct{}), cancel: cancel, readers: readers, publishers: publishers}
	for _, p := range publishers {
		l.publishing.Go(func() {
			if err := p.run(ctx, l.stop); err != nil {
				cancel(err)
			}
		})
	}
	for _, r := range readers {
		l.reading.Go(func() {
			for ctx.Err() == nil {
				// It has all that there is for the moment.
				if err := r.readTo(ctx, publishers); err != nil && ctx.Err() == nil {
					cancel(err)
				}
				_ = pause(ctx, time.Millisecond) // the loop sees the end
			}
		})
	}
	return l
}

// finish lets the publishers have their answers and the readers come to the end, for a time, and ends all.
func (l *running) finish(ctx context.Context, within time.Duration) {
	limit := time.AfterFunc(within, func() { l.cancel(errEnough) })
	defer limit.Stop()
	close(l.stop)
	l.publishing.Wait()
	deadline := time.Now().Add(within)
	for _, r := range l.readers {
		for !r.has(l.publishers) && time.Now().Before(deadline) && pause(ctx, 5*time.Millisecond) == nil {
			continue
		}
	}
	l.cancel(errEnough)
	l.reading.Wait()
}
