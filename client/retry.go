package client

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Waits between attempts are random in [0, 2 x base), and base doubles from firstRetry up to lastRetry: a thousand
// clients that lost the same broker come back spread out.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Second
)

// retry is the state of one series of attempts.
type retry struct {
	b *backoff.ExponentialBackOff
	// attempts counts what was tried since the series began.
	attempts int
}

func newRetry() *retry {
	r := &retry{b: &backoff.ExponentialBackOff{
		InitialInterval:     firstRetry,
		RandomizationFactor: 1,
		Multiplier:          2,
		MaxInterval:         lastRetry,
	}}
	r.reset()
	return r
}

// reset begins a new series.
func (r *retry) reset() {
	r.attempts = 0
	r.b.Reset()
}

// wait waits before the next attempt: at least as long as the last error asked for.
func (r *retry) wait(ctx context.Context, atLeast time.Duration) error {
	d := max(r.b.NextBackOff(), atLeast)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// askedWait is what a broker suggested.
func askedWait(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
