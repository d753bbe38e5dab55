package egress

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/stream"
)

// spin lets others run for a random moment.
func spin(rng *rand.Rand, n int) {
	for range rng.IntN(n) {
		runtime.Gosched()
	}
}

// Each commit reaches readers that are about to park, parked, served in place, or
// just starting to run, whether the committer or the lane wakes them. No poll helps.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, readers := range []int{1, inlineWakes, inlineWakes + 1, 3 * inlineWakes} {
		t.Run(fmt.Sprint(readers), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			x := newFixture(t, Config{Lanes: 1}, stream.Config{PollInterval: time.Hour})
			var subs []*stream.Subscription
			for range readers {
				w := newFakeStream(1 << 30)
				sub, _ := x.run(t, w)
				subs = append(subs, sub)
				defer w.drop()
			}
			for next := uint64(1); next <= 400; next++ {
				if rng.IntN(4) == 0 {
					time.Sleep(2 * directGap)
				}
				x.publish(t, rng.IntN(100))
				deadline := time.Now().Add(10 * time.Second)
				for _, sub := range subs {
					for sub.Info().Next != next {
						if runtime.Gosched(); time.Now().After(deadline) {
							t.Fatalf("a reader stays at %d, the mark is %d", sub.Info().Next, next)
						}
					}
				}
			}
		})
	}
}

// A reader ends when its client goes or an operator says so, whatever it is doing.
func TestNoEndIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := newFixture(t, Config{Lanes: 1}, stream.Config{PollInterval: time.Hour})
	for i := range uint64(1000) {
		w := newFakeStream(1 << 20)
		sub, ended := x.run(t, w)
		var all sync.WaitGroup
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2*i))
			spin(rng, 10)
			x.publish(t, 10)
		})
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2*i+1))
			spin(rng, []int{1, 3, 20}[rng.IntN(3)])
			if rng.IntN(2) == 0 {
				w.drop()
			} else {
				sub.Stop(stream.EndRemoved)
			}
		})
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("subscription %d does not end: %+v", i, sub.Info())
		}
		all.Wait()
		if i%3 == 0 {
			time.Sleep(2 * directGap) // so that the next frame is written directly
		}
	}
}
