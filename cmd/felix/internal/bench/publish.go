package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/client"
)

// publish measures acknowledged publishes, with nobody reading, and then reads the
// streams back.
func (b *bench) publish(ctx context.Context) (*report, error) {
	return b.with(ctx, func(t target) (*report, error) {
		s, err := newSession(ctx, &b.p, t, b.say)
		if err != nil {
			return nil, err
		}
		s.p.Acked = true
		if b.plot {
			s.clock = newRecorder(time.Now(), time.Duration(b.p.Duration))
		}
		r, err := s.publishAcked(ctx)
		return r, errors.Join(err, s.close())
	})
}

func (s *session) publishAcked(ctx context.Context) (*report, error) {
	starts, err := s.ends(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.publishOn(ctx, s.p.Conns); err != nil {
		return nil, err
	}
	var acked, refused atomic.Int64
	work := func(ctx context.Context, d time.Duration, records uint64) error {
		l := limit{until: time.Now().Add(d), records: records}
		return s.each(ctx, func(ctx context.Context, p *publisher) error {
			a, err := p.closedLoop(ctx, s.p.Inflight, l)
			acked.Add(a.acked)
			refused.Add(a.refused)
			return err
		})
	}
	s.count = acked.Load
	m, err := s.measure(ctx, work)
	if m.elapsed == 0 {
		return nil, err
	}
	m.delivered = m.published // an answer is what a publisher is delivered
	r := newReport(s, m)
	r.Refused = refused.Load()
	if err != nil {
		return r, err
	}
	sum, expired, err := s.readBack(ctx, starts, refused.Load() == 0)
	r.count(sum)
	r.Expired = expired
	if missing := s.published() - acked.Load(); missing != 0 {
		err = errors.Join(err, fmt.Errorf("bench: %d of %d publishes have no answer", missing, s.published()))
	}
	return r, errors.Join(err, sum.err())
}

// ends finds where each stream ends now: the first offset of the run's records.
func (s *session) ends(ctx context.Context) ([]uint64, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	ends := make([]uint64, len(s.streams))
	for i, stream := range s.streams {
		sub, err := c.Subscribe(ctx, stream, client.SubscribeConfig{NoReconnect: true})
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		ends[i] = sub.StartOffset()
		if err := sub.Close(); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	return ends, nil
}

func (s *session) readBack(ctx context.Context, starts []uint64, ordered bool) (sum account, expired int64, err error) {
	c, err := s.dial(ctx)
	if err != nil {
		return sum, 0, err
	}
	books := make([]*readback, len(s.streams))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for at, stream := range s.streams {
		counts := make([]uint64, s.p.Publishers)
		for k := range counts {
			counts[k] = s.publishers[at*s.p.Publishers+k].seq
		}
		books[at] = newReadback(s.pattern, uint16(at*s.p.Publishers), counts, ordered)
		g.Go(func() error { return books[at].read(gctx, c, stream, starts[at]) })
	}
	err = g.Wait()
	for _, b := range books {
		sum.add(b.close())
		expired += b.expired
	}
	return sum, expired, err
}
