package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func tallies(n int) []*tally {
	ts := make([]*tally, n)
	for i := range ts {
		ts[i] = &tally{}
	}
	return ts
}

func TestWindowHoldsThePublisher(t *testing.T) {
	for _, wakeups := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			readers := tallies(3)
			w := newWindow(4, readers, wakeups)
			sent := 0
			done := make(chan error, 1)
			go func() {
				for range 10 {
					if err := w.acquire(t.Context()); err != nil {
						done <- err
						return
					}
					sent++
				}
				done <- nil
			}()
			step := func(want int) {
				t.Helper()
				time.Sleep(time.Second)
				synctest.Wait()
				if sent != want {
					t.Fatalf("wakeups %v: %d sent, want %d", wakeups, sent, want)
				}
			}
			step(4)
			readers[0].delivered.Store(4)
			readers[1].delivered.Store(4)
			step(4) // the third has nothing
			readers[2].delivered.Store(2)
			w.delivered()
			step(6)
			readers[2].gone.Store(true) // nobody waits for it any more
			step(8)
			readers[0].delivered.Store(10)
			readers[1].delivered.Store(10)
			w.delivered()
			step(10)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := w.drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWindowWakesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readers := tallies(1)
		w := newWindow(1, readers, true)
		if err := w.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Millisecond)
			readers[0].delivered.Add(1)
			w.delivered()
		}()
		start := time.Now()
		if err := w.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Millisecond {
			t.Errorf("woken after %v, the record came after 1ms", d)
		}
	})
}

func TestWindowGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readers := tallies(2)
		w := newWindow(1, readers, false)
		w.patience = time.Second
		if err := w.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		readers[0].delivered.Store(1)
		start := time.Now()
		if err := w.acquire(t.Context()); !errors.Is(err, errStalled) {
			t.Errorf("acquire = %v", err)
		}
		if d := time.Since(start); d < w.patience || d > 2*w.patience {
			t.Errorf("gave up after %v", d)
		}
		if got := w.sent.Load(); got != 1 {
			t.Errorf("%d sent after a refusal, want 1", got)
		}
		if err := w.drain(t.Context()); !errors.Is(err, errStalled) {
			t.Errorf("drain = %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		boom := errors.New("boom")
		cancel(boom)
		if err := w.acquire(ctx); !errors.Is(err, boom) {
			t.Errorf("acquire with an ended context = %v", err)
		}
		if err := w.drain(ctx); !errors.Is(err, boom) {
			t.Errorf("drain with an ended context = %v", err)
		}
	})
}

// TestWindowIsPatient: slow is not stalled.
func TestWindowIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readers := tallies(1)
		w := newWindow(1, readers, false)
		w.patience = time.Second
		go func() {
			for range 5 {
				time.Sleep(w.patience * 3 / 4)
				readers[0].delivered.Add(1)
			}
		}()
		for range 5 {
			if err := w.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWindowWithoutReaders(t *testing.T) {
	w := newWindow(1, nil, false)
	for range 5 {
		if err := w.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}
