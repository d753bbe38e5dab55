package egress

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/stream"
)

// deadlineStream calls a function when a deadline in the future is about to be set.
type deadlineStream struct {
	*fakeStream
	once   sync.Once
	before func()
}

func (d *deadlineStream) SetWriteDeadline(t time.Time) error {
	if t.After(time.Now()) {
		d.once.Do(d.before)
	}
	return d.fakeStream.SetWriteDeadline(t)
}

// An operator's end is not undone by the deadline of the write that was about to
// begin.
func TestRemovedWhileADeadlineIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{})
		w := &deadlineStream{fakeStream: newFakeStream(0), before: func() { x.shard.End(1) }}
		_, ended := x.run(t, w)
		synctest.Wait()
		start := time.Now()
		x.publish(t, 100)
		if e := <-ended; e.Reason != stream.EndRemoved || time.Since(start) != 0 {
			t.Errorf("end %+v after %v, want removed at once", e, time.Since(start))
		}
	})
}

// Whose write fails while its shard is being closed was not removed by an operator.
func TestAFailedWriteOfAClosedShard(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func(*fakeStream)
		want stream.EndReason
	}{
		"slow": {func(*fakeStream) {}, stream.EndSlow},
		"gone": {(*fakeStream).drop, stream.EndCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newFixture(t, Config{}, stream.Config{})
				w := newFakeStream(0)
				_, ended := x.run(t, w)
				x.publish(t, 100)
				if err := x.shard.Close(context.Background(), stream.EndShutdown); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				tc.fail(w)
				if e := <-ended; e.Reason != tc.want || e.Next != 0 {
					t.Errorf("end %+v, want %v at 0", e, tc.want)
				}
			})
		})
	}
}
