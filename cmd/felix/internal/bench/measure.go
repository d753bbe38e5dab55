package bench

import (
	"context"
	"time"
)

// settle is the time between the last subscribe and the first record: connections
// finish their handshakes and path discovery. The programs that runs are compared
// with wait as long.
const settle = 200 * time.Millisecond

// measured is what was seen of the measured part of a run.
type measured struct {
	elapsed   time.Duration
	published int64
	delivered int64 // to healthy readers
	clientCPU float64
	// idle is the broker before the load, begin and end frame the measured part;
	// all nil if not known.
	idle, begin, end *usage
}

// measure runs warm-up and measured part of a load. work publishes until the limit
// and returns when everything has been delivered.
func (s *session) measure(ctx context.Context, work func(context.Context, time.Duration, uint64) error) (m measured, err error) {
	if err := sleep(ctx, settle); err != nil {
		return m, err
	}
	if m.idle, err = s.target.usage(ctx, momentLook); err != nil {
		return m, err
	}
	s.say.phase("warm-up", time.Duration(s.p.Warmup), s.count)
	if s.p.Warmup > 0 {
		if err := work(ctx, time.Duration(s.p.Warmup), 0); err != nil {
			return m, err
		}
	}
	if m.begin, err = s.target.usage(ctx, momentBegin); err != nil {
		return m, err
	}
	perPublisher := uint64(0)
	if s.p.Volume > 0 {
		perPublisher = uint64(s.p.Volume/int64(s.p.Size)/int64(s.p.Publishers)) + 1
	}
	s.say.phase(s.p.Scenario, time.Duration(s.p.Duration), s.count)
	published, delivered := s.published(), s.delivered()
	cpu, _ := ownCPU()
	s.clock.begin()
	start := time.Now()
	werr := work(ctx, time.Duration(s.p.Duration), perPublisher)
	m.elapsed = time.Since(start)
	after, _ := ownCPU()
	m.clientCPU = after - cpu
	m.published, m.delivered = s.published()-published, s.delivered()-delivered
	s.say.done()
	if werr != nil {
		return m, werr
	}
	m.end, err = s.target.usage(ctx, momentEnd)
	return m, err
}

// saturate is the work of a fan-out.
func (s *session) saturate(ctx context.Context, d time.Duration, records uint64) error {
	l := limit{records: records}
	if d > 0 {
		l.until = time.Now().Add(d)
	}
	err := s.each(ctx, func(ctx context.Context, p *publisher) error { return p.saturate(ctx, l) })
	if err != nil {
		return err
	}
	return s.drain(ctx)
}

// pace is the work of an open loop: all publishers together keep the rate.
func (s *session) pace(ctx context.Context, d time.Duration, _ uint64) error {
	start := s.clock.now()
	step := time.Second / time.Duration(s.p.Rate)
	period := step * time.Duration(len(s.publishers))
	err := s.each(ctx, func(ctx context.Context, p *publisher) error {
		return p.pace(ctx, start+step*time.Duration(p.id), period, start+d)
	})
	if err != nil {
		return err
	}
	return s.drain(ctx)
}
