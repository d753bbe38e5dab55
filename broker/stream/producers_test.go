package stream

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/seglog"
)

// B33, B88 and the table of the wire document.
func TestIdempotentProducer(t *testing.T) {
	l := &fakeLog{auto: true}
	s := openShard(t, Config{}, l)
	ok := func(c <-chan Result, want uint64) {
		t.Helper()
		if r := <-c; r.Err != nil || r.Offset != want {
			t.Errorf("%+v, want offset %d", r, want)
		}
	}
	refused := func(c <-chan Result, want RefusedError) {
		t.Helper()
		var e *RefusedError
		if r := <-c; !errors.As(r.Err, &e) || *e != want {
			t.Errorf("%v, want %v", r.Err, want)
		}
	}
	refused(idempotent(s, 7, 3, "x"), RefusedError{Reason: UnknownProducer})
	ok(idempotent(s, 7, 0, "a"), 0)
	ok(idempotent(s, 7, 1, "b", "c"), 1)
	ok(idempotent(s, 7, 1, "b", "c"), 1)
	refused(idempotent(s, 7, 1, "b", "other"), RefusedError{Reason: SequenceReused, Offset: 1})
	refused(idempotent(s, 7, 5, "x"), RefusedError{Reason: SequenceGap, Expected: 2})
	ok(idempotent(s, 8, 0, "z"), 3)
	for i := range uint64(70) {
		ok(idempotent(s, 7, 2+i, "n"), 4+i)
	}
	refused(idempotent(s, 7, 1, "b", "c"), RefusedError{Reason: SequenceExpired})
	ok(idempotent(s, 7, 71, "n"), 73)
	if s.Mark() != 74 {
		t.Errorf("mark %d, want 74: nothing repeated", s.Mark())
	}

	// The state comes back from a snapshot and from the log's records.
	state := s.producers.snapshot()
	again := newProducers()
	if err := again.restore(state); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.producers.byID, again.byID, cmp.AllowUnexported(producer{}, batchMark{})); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	replayed := &Shard{producers: newProducers()}
	for _, r := range l.records {
		replayed.recovered(r)
		replayed.recovered(r)
	}
	if d := cmp.Diff(s.producers.byID, replayed.producers.byID, cmp.AllowUnexported(producer{}, batchMark{})); d != "" {
		t.Errorf("replayed twice (-want +got):\n%s", d)
	}
	for n := range state {
		if err := newProducers().restore(state[:n]); err == nil {
			t.Errorf("a state cut to %d bytes was taken", n)
		}
	}
}

// A re-sent batch waits for the commit of the first one, and a refused append does
// not burn its sequence.
func TestIdempotentResendWhileInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s := openShard(t, Config{}, l)
		first := idempotent(s, 1, 0, "a")
		again := idempotent(s, 1, 0, "a")
		both := []<-chan Result{idempotent(s, 1, 1, "b"), idempotent(s, 1, 1, "b")}
		select {
		case r := <-again:
			t.Fatalf("answered before the commit: %+v", r)
		default:
		}
		l.commit()
		synctest.Wait()
		l.commit()
		synctest.Wait()
		for i, c := range append([]<-chan Result{first, again}, both...) {
			if r := <-c; r.Err != nil || r.Offset != uint64(i/2) {
				t.Errorf("answer %d: %+v", i, r)
			}
		}
		l.fail = seglog.ErrDiskFull
		if r := <-idempotent(s, 1, 2, "c"); r.Err == nil {
			t.Error("a full disk took a batch")
		}
		l.fail = nil
		c := idempotent(s, 1, 2, "c")
		l.commit()
		synctest.Wait()
		if r := <-c; r.Err != nil || r.Offset != 2 {
			t.Errorf("the retry: %+v", r)
		}
	})
}

// A re-sent batch that is committed waits for no other.
func TestIdempotentResendOfACommittedBatch(t *testing.T) {
	l := &fakeLog{}
	s := openShard(t, Config{}, l)
	first := idempotent(s, 1, 0, "a")
	l.commit()
	<-first
	for range claimPublishes {
		publish(s, "x")
	}
	var again []<-chan Result
	for range claimPublishes {
		again = append(again, idempotent(s, 1, 0, "a"))
	}
	if l.Next() == 1 || s.Mark() != 1 {
		t.Fatalf("written %d, committed %d: the case needs a claim in flight", l.Next(), s.Mark())
	}
	select {
	case r := <-again[0]:
		if r.Err != nil || r.Offset != 0 {
			t.Errorf("%+v", r)
		}
	default:
		t.Error("a committed batch waits for a later commit")
	}
}
