package stream

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// What a failed write leaves on the disk nobody knows: a publisher is not told that
// sending again is safe.
func TestAFailedWriteHasAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		code  wire.Code
		retry wire.Retry
	}{
		"full":     {seglog.ErrDiskFull, wire.CodeOverloaded, wire.RetryAfter},
		"readonly": {seglog.ErrReadOnly, wire.CodeOverloaded, wire.RetryAfter},
		"poisoned": {seglog.ErrPoisoned, wire.CodeStorage, wire.RetryOutcomeUnknown},
		"damaged":  {&seglog.CorruptionError{}, wire.CodeStorage, wire.RetryAfter},
		"closed":   {seglog.ErrClosed, wire.CodeShardUnavailable, wire.RetryNow},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLog{auto: true}
			s := openShard(t, Config{}, l)
			l.fail = tc.err
			r := <-publish(s, "x")
			if e, ok := errors.AsType[*Error](r.Err); !ok || e.Code != tc.code || e.Retry != tc.retry {
				t.Errorf("told %v", r.Err)
			}
			if tc.retry != wire.RetryOutcomeUnknown {
				return
			}
			r = <-publish(s, "y")
			if e, ok := errors.AsType[*Error](r.Err); !ok || e.Code != wire.CodeStorage || e.Retry != wire.RetryAfter {
				t.Errorf("the next one is told %v, want that nothing of it was written", r.Err)
			}
		})
	}
}

// A failed sync answers what is in flight as unknown, refuses what comes, and lets
// readers go on with what is committed.
func TestAFailedSyncPoisonsTheShard(t *testing.T) {
	l := &fakeLog{}
	s := openShard(t, Config{}, l)
	kept := publish(s, "kept")
	l.commit()
	<-kept
	lost := publish(s, "lost")
	s.logCommitted(1, errors.New("sync: input/output error"))
	var e *Error
	if r := <-lost; !errors.As(r.Err, &e) || e.Code != wire.CodeStorage || e.Retry != wire.RetryOutcomeUnknown {
		t.Errorf("in flight: %v", r.Err)
	}
	if r := <-publish(s, "later"); !errors.As(r.Err, &e) || e.Code != wire.CodeStorage || e.Retry == wire.RetryOutcomeUnknown {
		t.Errorf("later: %v, want a refusal that says nothing was written", r.Err)
	}
	o := offered(1)
	o.Start = earliest
	got, st := drain(t, subscribe(t, s, o))
	if d := cmp.Diff([]event{{0, "kept", 0}}, got); d != "" || st != Idle {
		t.Errorf("status %v, events (-want +got):\n%s", st, d)
	}
}
