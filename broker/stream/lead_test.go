package stream

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/wire"
)

// A replica that does not lead takes no subscription, and one that does counts from
// what is there (B19, B37).
func TestOnlyALeaderTakesReaders(t *testing.T) {
	s := openReplica(t, Config{}, newReplicaLog(0), ReplicaState{}, nil)
	refused := func(when string) {
		t.Helper()
		var e *Error
		if _, err := s.Subscribe(SubscribeOptions{ID: 1, Start: latest}); !errors.Is(err, ErrNotLeader) || !errors.As(err, &e) || e.Code != wire.CodeShardUnavailable {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("before it leads")
	apply(t, s, 1, batch("a", "b"))
	s.Lead()
	sub := subscribe(t, s, SubscribeOptions{ID: 2, Start: latest, Offsets: true})
	if sub.LiveOffset() != 2 || sub.StartOffset() != 2 {
		t.Errorf("latest is %d, live %d; want 2", sub.StartOffset(), sub.LiveOffset())
	}
	s.Pause()
	refused("while it pauses")
	if sub.Changed() {
		t.Error("pausing ended a reader")
	}
	s.Lead()
	s.Unlead(EndDeposed, nil)
	refused("after it has led")
	if _, st := drain(t, sub); st != Ended || sub.End().Reason != EndDeposed {
		t.Errorf("its reader: %v %+v", st, sub.End())
	}
}

// In an orderly hand-over a live reader gets what is committed by then and is told where
// to go on; one that reads history goes on there at once.
func TestHandOverDeliversWhatIsCommitted(t *testing.T) {
	s := openReplica(t, Config{}, newReplicaLog(0), ReplicaState{}, nil)
	s.Lead()
	apply(t, s, 1, batch("0"))
	live := subscribe(t, s, SubscribeOptions{ID: 1, Start: latest, Offsets: true})
	past := subscribe(t, s, SubscribeOptions{ID: 2, Start: earliest, Offsets: true})
	apply(t, s, 1, batch("1"), batch("2"))
	to := &Moved{NodeID: "b", Addr: "b:7443", Generation: 9}
	s.Unlead(EndMoved, to)
	apply(t, s, 9, batch("3")) // by the next leader
	got, st := drain(t, live)
	if len(got) != 2 || got[1].Offset != 2 || st != Ended {
		t.Fatalf("the live reader got %v, %v", got, st)
	}
	if e := live.End(); e.Reason != EndMoved || e.Moved != to || e.Next != 3 {
		t.Errorf("and ended with %+v", e)
	}
	if got, st := drain(t, past); len(got) != 0 || st != Ended || past.End().Next != 0 || past.End().Reason != EndMoved {
		t.Errorf("the one in history got %v, %v %+v", got, st, past.End())
	}
}

// While leadership comes and goes and records are applied all the time, readers that
// resume where they were ended see every record once, in order; none is left silent (B19).
func TestReadersAcrossChangesOfLeader(t *testing.T) {
	s := openReplica(t, Config{TailBytes: 64 << 10}, newReplicaLog(0), ReplicaState{}, nil)
	const total = 3000
	stop := make(chan struct{})
	var all, flipping sync.WaitGroup
	flipping.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				s.Lead()
				return
			default:
			}
			switch n % 4 {
			case 0:
				s.Lead()
			case 1:
				s.Pause()
			case 2:
				s.Lead()
			default:
				s.Unlead([]EndReason{EndMoved, EndDeposed}[n/4%2], nil)
			}
			time.Sleep(200 * time.Microsecond)
		}
	})
	for r := range 4 {
		all.Go(func() {
			next := uint64(0)
			for id := uint64(r * 1_000_000); next < total; id++ {
				next = readUntilEnded(t, s, id, next, total)
			}
		})
	}
	for i := range total {
		apply(t, s, 1, batch(fmt.Sprint(i)))
		if i%7 == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
	close(stop)
	flipping.Wait()
	all.Wait()
}

// readUntilEnded reads on from next and gives where it is to go on.
func readUntilEnded(t *testing.T, s *Shard, id, next, total uint64) uint64 {
	sub, err := s.Subscribe(SubscribeOptions{ID: id, Start: at(next), Offsets: true, Skips: true})
	if errors.Is(err, ErrNotLeader) {
		time.Sleep(100 * time.Microsecond)
		return next
	}
	if err != nil {
		t.Error(err)
		return total
	}
	defer sub.Close()
	deadline := time.Now().Add(20 * time.Second)
	for next < total {
		p, st := sub.Next(4<<10, 16<<10)
		switch st {
		case Ended:
			if e := sub.End(); e.Next != next {
				t.Errorf("ended %v at %d, but %d is the next", e.Reason, e.Next, next)
				return total
			}
			return next
		case Ready:
			for _, e := range decode(t, p.Bytes) {
				if e.Offset != next || e.Payload != fmt.Sprint(next) || e.Skipped != 0 {
					t.Errorf("got %+v, want offset %d", e, next)
					return total
				}
				next++
			}
			sub.Advance(p)
		default:
			if time.Now().After(deadline) {
				t.Errorf("silent at %d, the mark is %d", next, s.Mark())
				return total
			}
			time.Sleep(20 * time.Microsecond)
		}
	}
	return next
}
