package bench

import (
	"context"
	"errors"
	"fmt"
)

// wakeStalled lets the readers read that have not read until now, and waits until
// each has received everything or was told what it has missed.
func (s *session) wakeStalled(ctx context.Context) error {
	s.say.phase("stalled readers", progressAfter, func() int64 {
		var n int64
		for _, r := range s.readers {
			if r.stalled {
				n += r.tally.delivered.Load()
			}
		}
		return n
	})
	defer s.say.done()
	s.read(ctx, true)
	fanout := len(s.readers) / len(s.streams)
	for at, w := range s.windows {
		var late []*tally
		for _, r := range s.readers[at*fanout : (at+1)*fanout] {
			if r.stalled {
				late = append(late, r.tally)
			}
		}
		rest := newWindow(1, late, false)
		rest.sent.Store(w.sent.Load())
		if err := rest.drain(ctx); err != nil {
			return fmt.Errorf("bench: stalled readers that were woken: %w", err)
		}
	}
	return nil
}

// slowReport compares the healthy readers of two runs.
type slowReport struct {
	// Baseline is the run in which nobody stalls; nil if it was not wanted.
	Baseline *report `json:"baseline,omitempty"`
	Healthy  int     `json:"healthy"`
	Stalled  int     `json:"stalled"`
	// PerReader is what a healthy reader gets in a second.
	PerReader float64 `json:"msgs_per_s_per_reader"`
	// Kept is the healthy readers' rate as a share of that without stalled ones.
	Kept *float64 `json:"healthy_rate_kept,omitempty"`
	// RSSDifference is how much larger the broker was, at its peak.
	RSSDifference *int64 `json:"broker_rss_difference_bytes,omitempty"`
}

// slow measures the healthy readers alone, and then with stalled ones beside them.
func (b *bench) slow(ctx context.Context) (*report, error) {
	if b.p.Stalled == 0 {
		return nil, errors.New("bench: slow without --stalled compares nothing")
	}
	var baseline *report
	if b.p.Baseline {
		alone := *b
		alone.p.Fanout, alone.p.Stalled = b.p.Fanout-b.p.Stalled, 0
		alone.plot = false
		var err error
		if baseline, err = alone.deliver(ctx, 0); err != nil {
			return baseline, fmt.Errorf("bench: baseline: %w", err)
		}
	}
	r, err := b.deliver(ctx, b.p.Stalled)
	if r == nil {
		return nil, err
	}
	r.Slow = &slowReport{
		Baseline: baseline, Stalled: b.p.Stalled, Healthy: b.p.Fanout - b.p.Stalled,
		PerReader: r.MsgsPerS / float64((b.p.Fanout-b.p.Stalled)*b.p.Streams),
	}
	if baseline != nil {
		if baseline.MsgsPerS > 0 {
			kept := r.MsgsPerS / baseline.MsgsPerS
			r.Slow.Kept = &kept
		}
		if r.Broker != nil && baseline.Broker != nil {
			d := r.Broker.PeakRSS - baseline.Broker.PeakRSS
			r.Slow.RSSDifference = &d
		}
	}
	return r, err
}
