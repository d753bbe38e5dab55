package broker

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// health watches what a shard does with its disk: it counts, says in the log when
// writing stops to work and when it works again, and remembers what an operator
// should look at. Its methods may be called from any goroutine.
type health struct {
	log *slog.Logger // with the shard's name
	m   *metrics.Metrics

	// refused is set while the last write was refused and left nothing.
	refused atomic.Pointer[refusal]

	mu      sync.Mutex
	damaged *problem // the first that was found
}

type refusal struct {
	since time.Time
	err   error
}

// wrote notes a write that succeeded.
func (h *health) wrote() {
	if h.refused.Load() == nil {
		return
	}
	if r := h.refused.Swap(nil); r != nil {
		h.log.Info("the log takes writes again", slog.Duration("after", time.Since(r.since).Truncate(time.Millisecond)))
	}
}

// refusedWrite notes a write that was refused and left nothing.
func (h *health) refusedWrite(err error) {
	r := h.refused.Load()
	if r != nil && kindOfRefusal(r.err) == kindOfRefusal(err) {
		return
	}
	next := &refusal{since: time.Now(), err: err}
	if h.refused.CompareAndSwap(r, next) {
		p := refusedProblem(next.since, err)
		h.log.Warn("the log takes no writes, publishes are refused", slog.String("do", p.do), slog.Any("error", err))
	}
}

// damage notes records that cannot be read; closed as in damagedProblem.
func (h *health) damage(err error, closed bool) {
	h.m.Log.Errors.With(metrics.LogCorruption).Inc()
	h.mu.Lock()
	first := h.damaged == nil
	if first {
		h.damaged = damagedProblem(err, closed)
	}
	h.mu.Unlock()
	if first {
		h.log.Error("acknowledged records are damaged", slog.Any("error", err))
	}
}

// repaired forgets damage that is gone.
func (h *health) repaired() {
	h.mu.Lock()
	h.damaged = nil
	h.mu.Unlock()
}

// problem is what an operator should look at; nil: nothing that is known here.
func (h *health) problem() *problem {
	if r := h.refused.Load(); r != nil {
		return refusedProblem(r.since, r.err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.damaged
}

// committed is told what the log tells its shard.
func (h *health) committed(_ uint64, err error) {
	if err != nil {
		h.m.Log.Errors.With(metrics.LogPoisoned).Inc()
	}
}

func (h *health) synced(took time.Duration, _ error) { h.m.Log.Sync.Observe(took.Seconds()) }

func (h *health) trimmed(segments int) { h.m.Log.Trimmed.Add(float64(segments)) }

// watchedLog is a shard's log under watch.
type watchedLog struct {
	stream.Log
	health *health
	closed func() // nil: nobody wants to know
}

// Close implements stream.Log.
func (w watchedLog) Close() error {
	if w.closed != nil {
		defer w.closed()
	}
	return w.Log.Close()
}

// Append implements stream.Log.
func (w watchedLog) Append(records []seglog.Record) error {
	err := w.Log.Append(records)
	_, damaged := errors.AsType[*seglog.CorruptionError](err)
	switch {
	case err == nil:
		w.health.m.Log.Appends.Inc()
		w.health.wrote()
	case damaged, errors.Is(err, seglog.ErrPoisoned), errors.Is(err, seglog.ErrClosed): // known otherwise
	default:
		w.health.m.Log.Errors.With(metrics.LogErrorKind(kindOfRefusal(err))).Inc()
		w.health.refusedWrite(err)
	}
	return err
}

// Reader implements stream.Log.
func (w watchedLog) Reader(from uint64) stream.Reader {
	return watchedReader{w.Log.Reader(from), w.health}
}

type watchedReader struct {
	stream.Reader
	health *health
}

// Read implements stream.Reader.
func (r watchedReader) Read(limit uint64, maxBytes int, buf []byte) (seglog.Page, error) {
	page, err := r.Reader.Read(limit, maxBytes, buf)
	if err == nil {
		r.health.m.Egress.LogReads.Inc()
		return page, nil
	}
	_, tooOld := errors.AsType[*seglog.TooOldError](err)
	_, damaged := errors.AsType[*seglog.CorruptionError](err)
	switch {
	case tooOld, errors.Is(err, seglog.ErrClosed): // no fault of the log's
	case damaged:
		r.health.damage(err, false)
	default:
		r.health.m.Log.Errors.With(metrics.LogRead).Inc()
	}
	return page, err
}
