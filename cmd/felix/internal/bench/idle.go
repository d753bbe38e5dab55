package bench

import (
	"context"
	"errors"
	"time"
)

// idleReport is what open subscriptions cost that nothing is sent to.
type idleReport struct {
	Subscriptions int   `json:"subscriptions"`
	Before        int64 `json:"broker_rss_before_bytes"`
	After         int64 `json:"broker_rss_after_bytes"`
	// Each is the difference; Trimmed is the same after free memory was given back to
	// the system, which a broker at rest does by itself, in time.
	Each       float64 `json:"broker_rss_bytes_per_subscription"`
	Trimmed    float64 `json:"broker_rss_bytes_per_subscription_trimmed"`
	Heap       float64 `json:"broker_heap_bytes_per_subscription"`
	Stacks     float64 `json:"broker_stack_bytes_per_subscription"`
	Goroutines float64 `json:"broker_goroutines_per_subscription"`
}

// idle opens the subscriptions and compares the broker's memory before and after,
// with garbage collected and nothing given back by force. Then one record is
// published for each stream, to show that the subscriptions are alive.
func (b *bench) idle(ctx context.Context) (*report, error) {
	return b.with(ctx, func(t target) (*report, error) {
		s, err := newSession(ctx, &b.p, t, b.say)
		if err != nil {
			return nil, err
		}
		idle, err := s.idle(ctx)
		var m measured
		if err == nil {
			if err = s.publishOn(ctx, 1); err == nil {
				s.read(ctx, false)
				start := time.Now()
				err = s.saturate(ctx, 0, 1)
				m.elapsed = time.Since(start)
				m.published, m.delivered = s.published(), s.delivered()
			}
		}
		err = errors.Join(err, s.close())
		if m.elapsed == 0 {
			return nil, err
		}
		r := newReport(s, m)
		r.Idle = idle
		all, _ := s.accounts()
		r.count(all)
		return r, errors.Join(err, s.kept(all), all.err())
	})
}

func (s *session) idle(ctx context.Context) (*idleReport, error) {
	before, err := s.target.usage(ctx, momentTrim)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, errors.New("bench: idle: the broker's memory is not known: no --broker-pid")
	}
	if err := s.subscribe(ctx, s.p.Fanout, 0, false); err != nil {
		return nil, err
	}
	// The connections come to rest: acknowledgements, timers, path discovery.
	if err := sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	after, err := s.target.usage(ctx, momentCollect)
	if err != nil {
		return nil, err
	}
	trimmed, err := s.target.usage(ctx, momentTrim)
	if err != nil {
		return nil, err
	}
	if _, err := s.target.usage(ctx, momentEnd); err != nil { // the heap profile, if it is wanted
		return nil, err
	}
	n := float64(s.p.subscriptions())
	return &idleReport{
		Subscriptions: s.p.subscriptions(),
		Before:        before.RSS, After: after.RSS,
		Each:       float64(after.RSS-before.RSS) / n,
		Trimmed:    float64(trimmed.RSS-before.RSS) / n,
		Heap:       (float64(after.Heap) - float64(before.Heap)) / n,
		Stacks:     (float64(after.Stacks) - float64(before.Stacks)) / n,
		Goroutines: float64(after.Goroutines-before.Goroutines) / n,
	}, nil
}
