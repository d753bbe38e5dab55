package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/client"
)

// session is the load of one run: its connections, publishers and subscriptions,
// on one broker. Its methods are for one goroutine.
type session struct {
	p       *params
	target  target
	streams []client.Stream
	pattern *pattern
	// clock is what records are stamped with; it has the latencies.
	clock *recorder
	// every stamps one of so many records; 0: none.
	every uint64
	say   *progress
	// count is what a line of progress counts.
	count func() int64

	clients []*client.Client
	readers []*reader
	// windows and publishers have the order of streams.
	windows    []*window
	publishers []*publisher
	// running are the readers' goroutines.
	running *errgroup.Group
	stop    context.CancelFunc
}

func newSession(ctx context.Context, p *params, t target, say *progress) (*session, error) {
	streams, err := t.streams(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &session{
		p: p, target: t, streams: streams,
		pattern: newPattern(p.Seed, p.Size), clock: newRecorder(time.Now(), 0), say: say,
	}
	s.count = s.delivered
	return s, nil
}

// dial opens another connection to the broker.
func (s *session) dial(ctx context.Context) (*client.Client, error) {
	c, err := client.Dial(ctx, s.target.client())
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	s.clients = append(s.clients, c)
	return c, nil
}

// dialMany opens n connections, at least one.
func (s *session) dialMany(ctx context.Context, n int) ([]*client.Client, error) {
	var cs []*client.Client
	for range max(n, 1) {
		c, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// subscribe opens fanout subscriptions on each stream, the first stalled of which
// are never read, and a window for each stream over the others.
func (s *session) subscribe(ctx context.Context, fanout, stalled int, wakeups bool) error {
	clients, err := s.dialMany(ctx, s.p.Conns)
	if err != nil {
		return err
	}
	s.readers = make([]*reader, fanout*len(s.streams))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(32) // more subscribes at a time only wait for one another
	for i := range s.readers {
		at := i / fanout
		r := &reader{
			tally:   newTally(s.pattern, uint16(at*s.p.Publishers), s.p.Publishers),
			stalled: i%fanout < stalled,
		}
		r.tally.latency, r.tally.shard = s.clock, i
		s.readers[i] = r
		c := clients[i%len(clients)]
		g.Go(func() error {
			sub, err := c.Subscribe(gctx, s.streams[at], client.SubscribeConfig{NoReconnect: true})
			if err != nil {
				return fmt.Errorf("bench: subscription %d of %d: %w", i+1, len(s.readers), err)
			}
			r.sub = sub
			r.tally.start, r.tally.startKnown = sub.StartOffset(), sub.HasOffsets()
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for at := range s.streams {
		var healthy []*tally
		for _, r := range s.readers[at*fanout : (at+1)*fanout] {
			if !r.stalled {
				healthy = append(healthy, r.tally)
			}
		}
		w := newWindow(s.p.windowRecords(), healthy, wakeups)
		if wakeups {
			w.size = int64(s.p.Inflight)
		}
		s.windows = append(s.windows, w)
		for _, r := range s.readers[at*fanout : (at+1)*fanout] {
			r.window = w
		}
	}
	return nil
}

// read starts a goroutine for each reader of the kind.
func (s *session) read(ctx context.Context, stalled bool) {
	if s.running == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		s.stop = cancel
		s.running = &errgroup.Group{}
	}
	for _, r := range s.readers {
		if r.stalled == stalled && !r.started {
			r.started = true
			s.running.Go(func() error { return r.run(ctx) })
		}
	}
}

// publishOn opens the publishers of all streams.
func (s *session) publishOn(ctx context.Context, conns int) error {
	clients, err := s.dialMany(ctx, conns)
	if err != nil {
		return err
	}
	shared := map[*client.Client]map[client.Stream]*client.Publisher{}
	for at, stream := range s.streams {
		for i := range s.p.Publishers {
			n := at*s.p.Publishers + i
			c := clients[n%len(clients)]
			if shared[c] == nil {
				shared[c] = map[client.Stream]*client.Publisher{}
			}
			pub := shared[c][stream]
			if pub == nil {
				pub, err = c.NewPublisher(stream, client.PublisherConfig{MaxBatchRecords: s.p.Batch, Unacked: !s.p.Acked})
				if err != nil {
					return fmt.Errorf("bench: %w", err)
				}
				shared[c][stream] = pub
			}
			p := &publisher{
				id: uint16(n), pub: pub, pattern: s.pattern, clock: s.clock, every: s.every,
				buf: make([]byte, s.p.Size), perStream: s.p.Publishers,
			}
			if len(s.windows) > 0 {
				p.window = s.windows[at]
			}
			s.publishers = append(s.publishers, p)
		}
	}
	return nil
}

// each runs f for all publishers at once and waits for them.
func (s *session) each(ctx context.Context, f func(context.Context, *publisher) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range s.publishers {
		g.Go(func() error { return f(ctx, p) })
	}
	return g.Wait()
}

// drain waits until everything published has reached every healthy reader.
func (s *session) drain(ctx context.Context) error {
	for _, w := range s.windows {
		if err := w.drain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// delivered counts what healthy readers have received until now.
func (s *session) delivered() int64 {
	var n int64
	for _, r := range s.readers {
		if !r.stalled {
			n += r.tally.delivered.Load()
		}
	}
	return n
}

// published counts what was published until now; only between phases.
func (s *session) published() int64 {
	var n int64
	for _, p := range s.publishers {
		n += int64(p.seq)
	}
	return n
}

// close ends the subscriptions and waits for their readers, and returns what went
// wrong with one of them. The accounts may be read after that.
func (s *session) close() error {
	for _, r := range s.readers {
		if r.sub != nil {
			_ = r.sub.Close()
		}
	}
	var err error
	if s.running != nil {
		s.stop()
		err = s.running.Wait()
		s.running = nil
	}
	for _, c := range s.clients {
		if cerr := c.Close(); cerr != nil && !errors.Is(cerr, io.EOF) {
			err = errors.Join(err, cerr)
		}
	}
	s.clients = nil
	return err
}

// kept says why healthy readers were dropped, if they were.
func (s *session) kept(healthy account) error {
	err := healthy.dropped()
	if err == nil {
		return nil
	}
	for _, r := range s.readers {
		if !r.stalled && r.tally.lost != nil {
			return fmt.Errorf("%w: %d subscriptions were lost, the first: %w", err, healthy.Lost, r.tally.lost)
		}
	}
	return err
}

// accounts sums up the healthy and the stalled readers.
func (s *session) accounts() (healthy, stalled account) {
	for i, r := range s.readers {
		at := i / (len(s.readers) / len(s.streams))
		counts := make([]uint64, s.p.Publishers)
		for k := range counts {
			counts[k] = s.publishers[at*s.p.Publishers+k].seq
		}
		a := r.tally.close(counts)
		if r.stalled {
			stalled.add(a)
		} else {
			healthy.add(a)
		}
	}
	return healthy, stalled
}
