package stream

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// B21: a deleted stream's readers get what was committed before they end.
func TestDeletedStreamDeliversTheRest(t *testing.T) {
	l := &fakeLog{auto: true}
	s := openShard(t, Config{}, l)
	sub := subscribe(t, s, offered(1))
	mustPublish(t, s, "a")
	mustPublish(t, s, "b", "c")
	if err := s.Close(t.Context(), EndDeleted); err != nil {
		t.Fatal(err)
	}
	got, st := drain(t, sub)
	if d := cmp.Diff([]event{{0, "a", 0}, {1, "b", 0}, {2, "c", 0}}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if st != Ended || sub.End().Reason != EndDeleted {
		t.Errorf("status %v reason %v, want ended, deleted", st, sub.End().Reason)
	}
	if _, err := s.Subscribe(offered(2)); !errors.Is(err, ErrClosed) {
		t.Errorf("subscribe on a closed shard: %v", err)
	}
	if r := <-publish(s, "late"); !errors.Is(r.Err, ErrClosed) {
		t.Errorf("publish on a closed shard: %v", r.Err)
	}
}

// An operator may end a subscription at any moment, also before its feeder runs.
func TestStopBesideOnStop(t *testing.T) {
	s := openShard(t, Config{}, nil)
	for range 100 {
		sub := subscribe(t, s, offered(1))
		done := make(chan struct{})
		go func() { defer close(done); s.End(1) }()
		sub.OnStop(func(EndReason) {})
		<-done
		if _, st := sub.Next(1, 1); st != Ended || sub.End().Reason != EndRemoved {
			t.Fatalf("status %v, end %+v", st, sub.End())
		}
		sub.Close()
	}
}
