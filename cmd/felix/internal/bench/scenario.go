package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// bench runs scenarios.
type bench struct {
	p params
	// start makes a broker to measure. Each part of a scenario that is compared with
	// another one gets its own.
	start func(context.Context) (target, error)
	say   *progress
	plot  bool
	// version of the program, for the report.
	version string
}

// run runs the scenario. The report is there also when the run has failed, if
// there was anything to measure.
func (b *bench) run(ctx context.Context) (*report, error) {
	if err := b.p.Validate(); err != nil {
		return nil, err
	}
	started := time.Now()
	var r *report
	var err error
	switch b.p.Scenario {
	case scenarioPublish:
		r, err = b.publish(ctx)
	case scenarioFanout, scenarioLatency:
		r, err = b.deliver(ctx, b.p.Stalled)
	case scenarioSlow:
		r, err = b.slow(ctx)
	case scenarioIdleCluster:
		r, err = b.idleCluster(ctx)
	case scenarioIdle:
		r, err = b.idle(ctx)
	default:
		return nil, fmt.Errorf("bench: no scenario %q", b.p.Scenario)
	}
	if r != nil {
		r.StartedAt, r.Version, r.Params, r.Machine = started.UTC(), b.version, b.p, thisMachine()
	}
	return r, err
}

// with runs f on a broker of its own.
func (b *bench) with(ctx context.Context, f func(target) (*report, error)) (*report, error) {
	t, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	r, err := f(t)
	if r != nil {
		r.GSO, r.GRO = t.trains(ctx)
		if c, ok := t.(*cluster); ok && r.IdleCluster == nil {
			r.Cluster = c.report(ctx, r)
		}
	}
	return r, errors.Join(err, t.Close())
}

// deliver is fanout and latency: everything published is delivered to every
// subscription that is read. The stalled ones are read when the measured part is
// over.
func (b *bench) deliver(ctx context.Context, stalled int) (*report, error) {
	return b.with(ctx, func(t target) (*report, error) {
		s, err := newSession(ctx, &b.p, t, b.say)
		if err != nil {
			return nil, err
		}
		work, wakeups := s.saturate, false
		s.every = fanoutSample
		if b.p.Scenario == scenarioLatency {
			s.every, wakeups = 1, true
			if b.p.Rate > 0 {
				work = s.pace
			}
		}
		if b.plot {
			s.clock = newRecorder(time.Now(), time.Duration(b.p.Duration))
		}
		m, err := b.measureDelivery(ctx, s, stalled, wakeups, work)
		if err == nil && stalled > 0 {
			err = s.wakeStalled(ctx)
		}
		err = errors.Join(err, s.close())
		if m.elapsed == 0 {
			return nil, err
		}
		r := newReport(s, m)
		healthy, late := s.accounts()
		r.count(healthy)
		if stalled > 0 {
			r.Stalled = &late
		}
		if b.p.Scenario != scenarioLatency || b.p.Rate == 0 {
			// The publisher waits for the slowest healthy reader, so that none can be too
			// slow. One that keeps a rate does not.
			err = errors.Join(err, s.kept(healthy))
		}
		return r, errors.Join(err, healthy.err(), late.err())
	})
}

func (b *bench) measureDelivery(ctx context.Context, s *session, stalled int, wakeups bool, work func(context.Context, time.Duration, uint64) error) (measured, error) {
	if err := s.subscribe(ctx, b.p.Fanout, stalled, wakeups); err != nil {
		return measured{}, err
	}
	if err := s.publishOn(ctx, 1); err != nil {
		return measured{}, err
	}
	s.read(ctx, false)
	return s.measure(ctx, work)
}

// fanoutSample is how many records of a fan-out there are for one that is timed.
const fanoutSample = 64
