package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errStalled ends a run in which nothing was delivered for a window's patience.
var errStalled = errors.New("no healthy subscriber has received anything for too long")

const (
	// defaultPatience is longer than what a broker may rightly take, under any
	// policy, before it gives a reader up.
	defaultPatience = 40 * time.Second
	// pollEvery is how often a publisher without room looks again. It is not woken:
	// that would cost every reader something for every batch.
	pollEvery = 200 * time.Microsecond
)

// window bounds what is published and not yet delivered to the slowest healthy
// subscriber of a stream. Its publishers share it.
type window struct {
	size    int64 // records
	tallies []*tally
	// patience is how long nothing may be delivered while something is owed.
	patience time.Duration
	sent     atomic.Int64
	low      atomic.Int64 // no tally that is not gone has received fewer

	// wake, if it is not nil, is poked by readers (see delivered), so that a closed
	// loop of a few records is not paced by pollEvery.
	wake    chan struct{}
	waiting atomic.Bool

	mu sync.Mutex
	// slowest is the index of the tally that was last found too far behind; it is
	// looked at first, so that a look that finds no room costs one counter.
	slowest int
}

func newWindow(size int, tallies []*tally, wakeups bool) *window {
	w := &window{size: int64(size), tallies: tallies, patience: defaultPatience}
	if wakeups {
		w.wake = make(chan struct{}, 1)
	}
	return w
}

// acquire waits for room for one more record.
func (w *window) acquire(ctx context.Context) error {
	if w.sent.Add(1)-w.low.Load() <= w.size {
		return nil
	}
	err := w.wait(ctx)
	if err != nil {
		w.sent.Add(-1)
	}
	return err
}

func (w *window) wait(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Go on when there is room for some more, not for one: a publisher that is let
	// go for every record makes batches of one.
	slack := w.size / 16
	if w.wake != nil {
		slack = 0
	}
	seen, since := w.low.Load(), time.Now()
	for {
		w.waiting.Store(true)
		low, ok := w.reached(w.sent.Load() - w.size + slack)
		if ok {
			w.waiting.Store(false)
			w.low.Store(low)
			return nil
		}
		if low > seen {
			seen, since = low, time.Now()
		} else if time.Since(since) > w.patience {
			return errStalled
		}
		if err := w.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits until it may be worth to look again. Even with wake-ups it is not
// for long: a tally that has gone wakes nobody.
func (w *window) pause(ctx context.Context) error {
	d := pollEvery
	if w.wake != nil {
		d = 100 * time.Millisecond
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-w.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// delivered is called by a reader after each batch.
func (w *window) delivered() {
	if w.wake != nil && w.waiting.Load() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// reached says whether all that are not gone have received need records, and the
// least that one of them has; if it is false, the count is of the one in the way.
func (w *window) reached(need int64) (low int64, ok bool) {
	low, found := int64(0), false
	n := len(w.tallies)
	for k := range n {
		i := (w.slowest + k) % n
		t := w.tallies[i]
		if t.gone.Load() {
			continue
		}
		got := t.delivered.Load()
		if got < need {
			w.slowest = i
			return got, false
		}
		if !found || got < low {
			low, found = got, true
		}
	}
	if !found { // nobody is left to wait for
		return w.sent.Load(), true
	}
	return low, true
}

// drain waits until everything that was sent has been delivered to all that are
// not gone.
func (w *window) drain(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, since := int64(-1), time.Now()
	for {
		low, ok := w.reached(w.sent.Load())
		if ok {
			w.low.Store(low)
			return nil
		}
		if low != seen {
			seen, since = low, time.Now()
		} else if time.Since(since) > w.patience {
			return errStalled
		}
		t := time.NewTimer(pollEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}
