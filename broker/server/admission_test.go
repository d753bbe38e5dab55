package server

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudget(t *testing.T) {
	b := newBudget(100)
	for _, step := range []struct {
		take int64
		ok   bool
	}{{60, true}, {50, false}, {40, true}, {1, false}} {
		if got := b.try(step.take); got != step.ok {
			t.Errorf("take %d: %v, want %v", step.take, got, step.ok)
		}
	}
	b.release(60)
	b.release(40)
	// One that is larger than everything passes when nothing else is held.
	if !b.try(1000) || b.try(1) {
		t.Error("a large one alone")
	}
	b.release(1000)
	if !b.idle() {
		t.Error("something is left")
	}
}

func TestBudgetWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		b := newBudget(100)
		if !b.try(100) {
			t.Fatal("empty budget")
		}
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		wait := func(i int, n int64, limit time.Duration) {
			wg.Go(func() {
				p := patience{limit: limit, gone: gone}
				p.begin()
				defer p.stop()
				ok := b.acquire(n, &p)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					order = append(order, i)
				} else {
					order = append(order, -i)
				}
			})
			synctest.Wait()
		}
		wait(1, 90, time.Hour)
		wait(2, 20, time.Second) // behind 1, although it is small
		wait(3, 5, time.Hour)
		b.release(10)
		time.Sleep(2 * time.Second)
		synctest.Wait() // 2 gave up
		b.release(85)   // 5 held: 1 fits now, and 3 with it
		synctest.Wait()
		wait(4, 100, time.Hour)
		close(gone) // its connection went
		wg.Wait()
		if want := []int{-2, 1, 3, -4}; len(order) != 4 || order[0] != want[0] || order[1]+order[2] != 4 || order[3] != want[3] {
			t.Errorf("order %v, want %v", order, want)
		}
		if got := b.held(); got != 100 {
			t.Errorf("%d held", got)
		}
	})
}

func TestPatienceIsForTheWholeFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newBudget(1), newBudget(1)
		first.try(1)
		second.try(1)
		p := patience{limit: time.Second}
		for range 2 { // the timer is used again
			p.begin()
			time.AfterFunc(600*time.Millisecond, func() { first.release(1) })
			begin := time.Now()
			if !first.acquire(1, &p) {
				t.Fatal("no room within the patience")
			}
			if second.acquire(1, &p) {
				t.Fatal("room where there is none")
			}
			if took := time.Since(begin); took != time.Second {
				t.Errorf("gave up after %s", took)
			}
		}
		p.stop()
	})
}

func TestBudgetAtRandom(t *testing.T) {
	b := newBudget(1000)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			p := patience{limit: time.Millisecond}
			for range 300 {
				n := rand.Int64N(1500)
				p.begin()
				if b.acquire(n, &p) {
					if held := b.held(); held > 1500 {
						t.Errorf("%d held", held)
					}
					b.release(n)
				}
			}
			p.stop()
		})
	}
	wg.Wait()
	if !b.idle() {
		t.Errorf("%d left", b.held())
	}
}
