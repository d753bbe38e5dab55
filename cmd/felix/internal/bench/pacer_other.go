//go:build !linux

package bench

import (
	"context"
	"time"
)

// pacer waits for short times, as exactly as the runtime can.
type pacer struct{}

func newPacer() (*pacer, error) { return &pacer{}, nil }

// wait returns after d, or when ctx ends.
func (p *pacer) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return sleep(ctx, d)
}

func (p *pacer) close() {}
