package bench

import (
	"context"
	"errors"
	"time"
)

// idleClusterReport is what a cluster costs that has streams and nothing to do, all brokers
// together.
type idleClusterReport struct {
	Streams int     `json:"streams"`
	Create  float64 `json:"create_s"` // one stream after the other, through one broker
	// CPU is in percent of one core, over Seconds.
	CPU        float64 `json:"cpu_percent"`
	Seconds    float64 `json:"seconds"`
	Syncs      float64 `json:"syncs"`
	RSS        int64   `json:"rss_bytes"`
	Heap       uint64  `json:"heap_bytes"`
	Goroutines int     `json:"goroutines"`
	Switches   float64 `json:"switches_per_s"`

	Brokers []memberReport `json:"brokers,omitempty"`
}

// aliveStreams is how many streams are published to at the end of an idle time, to show that they are alive.
const aliveStreams = 64

// idleCluster makes the streams, lets the cluster come to rest for the warm-up, and
// looks what it uses for the duration. Then it publishes to some of the streams.
func (b *bench) idleCluster(ctx context.Context) (*report, error) {
	return b.with(ctx, func(t target) (*report, error) {
		begun := time.Now()
		s, err := newSession(ctx, &b.p, t, b.say)
		if err != nil {
			return nil, err
		}
		created := time.Since(begun)
		idle, err := s.rest(ctx)
		var r *report
		if err == nil {
			idle.Create = created.Seconds()
			r, err = s.alive(ctx)
		}
		if r != nil {
			r.IdleCluster = idle
		}
		return r, errors.Join(err, s.close())
	})
}

// rest looks at a cluster that is left alone.
func (s *session) rest(ctx context.Context) (*idleClusterReport, error) {
	s.say.phase("settling", time.Duration(s.p.Warmup), s.count)
	if err := sleep(ctx, time.Duration(s.p.Warmup)); err != nil {
		return nil, err
	}
	begin, err := s.target.usage(ctx, momentBegin)
	if err != nil {
		return nil, err
	}
	if begin == nil {
		return nil, errors.New("bench: idle-cluster: the brokers' processes are not known: it starts its own")
	}
	start := time.Now()
	s.say.phase("idle", time.Duration(s.p.Duration), s.count)
	if err := sleep(ctx, time.Duration(s.p.Duration)); err != nil {
		return nil, err
	}
	end, err := s.target.usage(ctx, momentEnd)
	if err != nil {
		return nil, err
	}
	s.say.done()
	seconds := time.Since(start).Seconds()
	out := &idleClusterReport{
		Streams: len(s.streams), CPU: (end.CPU - begin.CPU) / seconds * 100, Seconds: seconds,
		RSS: end.RSS, Heap: end.Heap, Goroutines: end.Goroutines, Switches: float64(end.Switches-begin.Switches) / seconds,
	}
	if c, ok := s.target.(*cluster); ok {
		out.Brokers, out.Syncs = c.used()
	}
	return out, nil
}

// alive publishes one record to some streams, and reads them back.
func (s *session) alive(ctx context.Context) (*report, error) {
	p := *s.p
	p.Streams, p.Acked, p.Duration, p.Warmup, p.Volume = min(len(s.streams), aliveStreams), true, 1, 0, 1
	s.p, s.streams = &p, s.streams[:p.Streams]
	return s.publishAcked(ctx)
}

// summarize prints it for a person.
func (i *idleClusterReport) summarize(line func(name, format string, args ...any)) {
	line("made", "%d streams in %.1f s", i.Streams, i.Create)
	line("idle", "%.2f %% of one core for all brokers, %.0f data syncs, %.0f context switches/s, over %.0f s", i.CPU, i.Syncs, i.Switches, i.Seconds)
	line("", "RSS %s, heap %s, %d goroutines in all", mib(i.RSS), mib(int64(i.Heap)), i.Goroutines)
}
