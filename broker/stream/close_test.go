package stream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/wire"
)

// A shard that is closed out of time answers what it had accepted and not written,
// and starts nothing afterwards.
func TestCloseOutOfTimeAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s, err := Open(Config{}, func(h Hooks) (Log, error) { l.hooks = h; return l, nil })
		if err != nil {
			t.Fatal(err)
		}
		written := publish(s, "written")
		held := publish(s, "held") // for the sync under way
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(ctx, EndShutdown); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v, want the unconfirmed write reported", err)
		}
		select {
		case r := <-held:
			if e, ok := errors.AsType[*Error](r.Err); !ok || e.Code != wire.CodeDraining {
				t.Errorf("held: %+v", r)
			}
		default:
			t.Error("a publish that was never written is not answered")
		}
		l.commit()
		if r := <-written; r.Err != nil {
			t.Errorf("written: %v", r.Err)
		}
		synctest.Wait()
		if l.appends != 1 {
			t.Errorf("%d appends, the second after Close", l.appends)
		}
	})
}

// A deadline that passes while Close waits for a commit does the same.
func TestCloseWaitsForACommitAsLongAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s, err := Open(Config{}, func(h Hooks) (Log, error) { l.hooks = h; return l, nil })
		if err != nil {
			t.Fatal(err)
		}
		publish(s, "a")
		b := publish(s, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Close(ctx, EndDeleted); err == nil || time.Since(start) != time.Second {
			t.Errorf("close: %v after %v", err, time.Since(start))
		}
		select {
		case r := <-b:
			t.Errorf("answered before its commit: %+v", r)
		default:
		}
		l.commit()
		if r := <-b; r.Err != nil || r.Offset != 1 {
			t.Errorf("b: %+v", r)
		}
	})
}
