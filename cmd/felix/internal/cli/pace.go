package cli

import (
	"context"
	"time"
)

// pacer lets things happen at an even rate. When it has fallen behind it catches up, but by no more than a tenth
// of a second or one thing, so that a pause is not followed by a flood.
type pacer struct {
	every time.Duration // 0: it never waits
	next  time.Time
}

func newPacer(perSecond float64) *pacer {
	if perSecond <= 0 {
		return &pacer{}
	}
	return &pacer{every: time.Duration(float64(time.Second) / perSecond)}
}

// wait returns when the next thing is due.
func (p *pacer) wait(ctx context.Context) error {
	if p.every == 0 {
		return nil
	}
	now := time.Now()
	if oldest := now.Add(-max(100*time.Millisecond, p.every)); p.next.IsZero() {
		p.next = now
	} else if p.next.Before(oldest) {
		p.next = oldest
	}
	due := p.next
	p.next = p.next.Add(p.every)
	if !due.After(now) {
		return nil
	}
	timer := time.NewTimer(due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
