package stream

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type countingWaker struct{ n atomic.Int64 }

func (w *countingWaker) Wake() { w.n.Add(1) }

// A lost wake-up costs one poll interval; a shard that does not move costs nothing (B92).
func TestPollIsTheSecondChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShard(t, Config{PollInterval: 5 * time.Second}, nil)
		w := new(countingWaker)
		s.Watch(w)
		defer s.Unwatch(w)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.n.Load(); n != 0 {
			t.Errorf("%d wake-ups of an idle shard, want 0", n)
		}
		mustPublish(t, s, "x")
		if n := w.n.Load(); n != 1 {
			t.Fatalf("%d wake-ups for a commit, want 1", n)
		}
		time.Sleep(6 * time.Second) // the commit's own wake-up was lost, say
		synctest.Wait()
		if n := w.n.Load(); n != 2 {
			t.Errorf("%d wake-ups after a poll interval, want one more", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.n.Load(); n != 2 {
			t.Errorf("%d wake-ups in the quiet that follows, want no more", n)
		}
	})
}

// markWaker notes the mark of each of its wake-ups.
type markWaker struct {
	s    *Shard
	seen []uint64
}

func (w *markWaker) Wake() { w.seen = append(w.seen, w.s.Mark()) }

// Who is woken finds the mark moved: who looks before it is woken again.
func TestTheMarkMovesBeforeTheWakeUp(t *testing.T) {
	s := openShard(t, Config{}, &fakeLog{auto: true})
	w := &markWaker{s: s}
	s.Watch(w)
	defer s.Unwatch(w)
	for range 3 {
		mustPublish(t, s, "x")
	}
	if d := cmp.Diff([]uint64{1, 2, 3}, w.seen); d != "" {
		t.Errorf("marks at the wake-ups (-want +got):\n%s", d)
	}
}
