package bench

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Histograms count microseconds, up to two minutes, to three digits.
	histogramMax    = int64(2 * time.Minute / time.Microsecond)
	histogramDigits = 3
	recorderShards  = 8
	plotSlots       = 72 // columns of a plot on an 80 character terminal
)

// recorder collects latencies. Readers record into a part of it each, so that they
// hardly ever wait for one another.
type recorder struct {
	base   time.Time     // stamps count from here
	from   atomic.Int64  // what was due before this is not recorded: everything, until begin
	slot   time.Duration // length of a column of the plot; 0: none is wanted
	shards [recorderShards]recorderShard
}

type recorderShard struct {
	mu   sync.Mutex
	due  *hdrhistogram.Histogram // since the record was due
	sent *hdrhistogram.Histogram // since it was handed to the client library
	// slots has a histogram of due for each column. They are made when needed, and
	// are coarser.
	slots []*hdrhistogram.Histogram
	_     [64]byte
}

func newRecorder(base time.Time, plot time.Duration) *recorder {
	r := &recorder{base: base, slot: plot / plotSlots}
	r.from.Store(math.MaxInt64)
	for i := range r.shards {
		s := &r.shards[i]
		s.due = hdrhistogram.New(1, histogramMax, histogramDigits)
		s.sent = hdrhistogram.New(1, histogramMax, histogramDigits)
		if r.slot > 0 {
			s.slots = make([]*hdrhistogram.Histogram, plotSlots)
		}
	}
	return r
}

// now is the time on the run's clock, never 0.
func (r *recorder) now() time.Duration { return time.Since(r.base) + 1 }

// begin starts the measured part.
func (r *recorder) begin() { r.from.Store(int64(r.now())) }

// record takes the latency of a record that came at now.
func (r *recorder) record(shard int, st stamp, now time.Duration) {
	from := time.Duration(r.from.Load())
	if st.due < from {
		return
	}
	s := &r.shards[shard%recorderShards]
	us := clampMicros(now - st.due)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The value was clamped to the histogram's range, so these cannot fail.
	_ = s.due.RecordValue(us)
	_ = s.sent.RecordValue(clampMicros(now - st.due - st.late))
	if r.slot == 0 {
		return
	}
	i := min(int((st.due-from)/r.slot), plotSlots-1)
	if s.slots[i] == nil {
		s.slots[i] = hdrhistogram.New(1, histogramMax, 2)
	}
	_ = s.slots[i].RecordValue(us)
}

func clampMicros(d time.Duration) int64 {
	return min(max(int64((d+time.Microsecond/2)/time.Microsecond), 1), histogramMax)
}

// quantiles are what is reported of a histogram, in microseconds.
type quantiles struct {
	Count               int64
	P50, P99, P999, Max float64
}

func summarize(h *hdrhistogram.Histogram) quantiles {
	return quantiles{
		Count: h.TotalCount(),
		P50:   float64(h.ValueAtPercentile(50)),
		P99:   float64(h.ValueAtPercentile(99)),
		P999:  float64(h.ValueAtPercentile(99.9)),
		Max:   float64(h.Max()),
	}
}

// summary merges the shards: latencies since a record was due, and since it was
// sent.
func (r *recorder) summary() (due, sent quantiles) {
	d := hdrhistogram.New(1, histogramMax, histogramDigits)
	s := hdrhistogram.New(1, histogramMax, histogramDigits)
	for i := range r.shards {
		shard := &r.shards[i]
		shard.mu.Lock()
		d.Merge(shard.due)
		s.Merge(shard.sent)
		shard.mu.Unlock()
	}
	return summarize(d), summarize(s)
}

// series is the plot: medians and 99th percentiles over time. Columns in which
// nothing was due repeat the one before.
func (r *recorder) series() (p50, p99 []float64) {
	for i := range plotSlots {
		h := hdrhistogram.New(1, histogramMax, 2)
		for k := range r.shards {
			s := &r.shards[k]
			s.mu.Lock()
			if s.slots != nil && s.slots[i] != nil {
				h.Merge(s.slots[i])
			}
			s.mu.Unlock()
		}
		switch q := summarize(h); {
		case q.Count > 0:
			p50, p99 = append(p50, q.P50), append(p99, q.P99)
		case len(p50) > 0:
			p50, p99 = append(p50, p50[len(p50)-1]), append(p99, p99[len(p99)-1])
		}
	}
	return p50, p99
}
