package stream

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/wire"
)

// A publish behind others is held up as long as the first one, not once more: the
// wait is counted from when it was handed in.
func TestBlockedPublishesWaitSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 10 * time.Second
		s := openShard(t, Config{Queue: Queue{Entries: 1, OnFull: Block}, PublishWait: wait, BlockTimeout: time.Hour}, nil)
		sub := subscribe(t, s, offered(1))
		mustPublish(t, s, "fills it")
		start := time.Now()
		var all []<-chan Result
		for i := range 3 * claimPublishes {
			all = append(all, publish(s, fmt.Sprint(i)))
		}
		for i, c := range all {
			r := <-c
			if e, ok := errors.AsType[*Error](r.Err); !ok || e.Reason != "subscriber_blocking" || time.Since(start) != wait {
				t.Fatalf("publish %d: %v after %v, want told after %v", i, r.Err, time.Since(start), wait)
			}
		}
		if n := s.Info().Blocked; n != uint64(len(all)) {
			t.Errorf("%d publishes counted, want all %d", n, len(all))
		}
		sub.Close()
	})
}

// Who has read everything holds nobody up for good: while the log does not commit,
// the publishers wait for the log, and the reader is not ended for it.
func TestBlockDoesNotEndAReaderForASlowLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s := openShard(t, Config{Queue: Queue{Entries: 1, OnFull: Block}, BlockTimeout: 30 * time.Second}, l)
		sub := subscribe(t, s, offered(1))
		first := publish(s, "a")
		synctest.Wait()
		for range 10 {
			for range claimPublishes { // more than what waits for the sync under way
				publish(s, "b")
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		if got, st := drain(t, sub); len(got) != 0 || st != Idle {
			t.Fatalf("nothing is committed: %v, status %v, end %+v", got, st, sub.End())
		}
		l.commit()
		if r := <-first; r.Err != nil {
			t.Error(r.Err)
		}
		if got, st := drain(t, sub); len(got) != 1 || st != Idle {
			t.Errorf("after the commit: %d records, status %v, end %+v", len(got), st, sub.End())
		}
	})
}

// A reader that was given up and has caught up all the same makes publishers wait
// again: it must not fall behind without bound.
func TestAReaderThatCaughtUpBlocksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s := openShard(t, Config{Queue: Queue{Entries: 2, OnFull: Block}, BlockTimeout: 30 * time.Second, PublishWait: 40 * time.Second}, l)
		sub := subscribe(t, s, offered(1))
		commit := func() {
			synctest.Wait()
			l.commit()
		}
		publish(s, "a")
		commit()
		publish(s, "b")
		commit()
		p, _ := sub.Next(1<<20, 1<<20) // both, in a write that takes its time
		given := publish(s, "c")       // waits until the reader is given up, and is not committed yet
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if l.Next() != 3 || s.Mark() != 2 || p.Records != 2 {
			t.Fatalf("written %d, committed %d, piece of %d: the case needs 3, 2 and 2", l.Next(), s.Mark(), p.Records)
		}
		sub.Advance(p)
		if got, st := drain(t, sub); len(got) != 0 || st != Idle {
			t.Fatalf("got %v, status %v, end %+v: it has read everything", got, st, sub.End())
		}
		commit()
		if r := <-given; r.Err != nil || r.Offset != 2 {
			t.Fatalf("c: %+v", r)
		}
		publish(s, "d")
		commit()
		full := publish(s, "e")
		time.Sleep(time.Second)
		synctest.Wait()
		if l.Next() != 4 {
			t.Error("a publish passed a full reader")
		}
		if got, st := drain(t, sub); len(got) != 2 || st != Idle {
			t.Errorf("got %v, status %v", got, st)
		}
		commit()
		if r := <-full; r.Err != nil {
			t.Errorf("e: %v", r.Err)
		}
	})
}

// Under Block a memory stream keeps what a reader still needs, however small its
// ring is: the publishers wait, nothing is lost.
func TestBlockKeepsTheRingForItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShard(t, Config{TailBytes: 64 << 10, Queue: Queue{OnFull: Block}}, nil)
		sub := subscribe(t, s, offered(1))
		mustPublish(t, s, "0")
		p, _ := sub.Next(1, 1)
		const n = 400
		done := make(chan struct{}, n)
		go func() {
			for i := range n {
				r := <-publish(s, fmt.Sprintf("%d %s", i, make([]byte, 10<<10)))
				for r.Err != nil {
					r = <-publish(s, fmt.Sprintf("%d %s", i, make([]byte, 10<<10)))
				}
				done <- struct{}{}
			}
		}()
		synctest.Wait()
		if b := s.tail.bytes(); b > 1<<20 {
			t.Errorf("the ring holds %d bytes, its limit is 64 KiB", b)
		}
		sub.Advance(p)
		for got := 0; got < n; {
			events, st := drain(t, sub)
			if st != Idle {
				t.Fatalf("after %d: status %v, end %+v", got, st, sub.End())
			}
			got += len(events)
			synctest.Wait()
		}
		for range n {
			<-done
		}
		if b := s.tail.bytes(); b > 1<<20 {
			t.Errorf("the ring holds %d bytes at the end", b)
		}
	})
}

// A log that fails holds nobody up behind what it lost: publishers are told why, at
// once, also those that were waiting.
func TestAPoisonedLogDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s := openShard(t, Config{Queue: Queue{Entries: 1, OnFull: Block}}, l)
		subscribe(t, s, offered(1))
		publish(s, "lost")
		synctest.Wait()
		var all []<-chan Result
		for range claimPublishes {
			all = append(all, publish(s, "waits"))
		}
		synctest.Wait()
		start := time.Now()
		s.logCommitted(0, errors.New("sync: input/output error"))
		for _, c := range append(all, publish(s, "later")) {
			if e, ok := errors.AsType[*Error]((<-c).Err); !ok || e.Code != wire.CodeStorage || time.Since(start) != 0 {
				t.Fatalf("told %v after %v", e, time.Since(start))
			}
		}
	})
}

// A reader that is over holds nobody up while its stream is being closed.
func TestAnEndedReaderDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShard(t, Config{Queue: Queue{Entries: 1, OnFull: Block}}, nil)
		sub := subscribe(t, s, offered(1))
		mustPublish(t, s, "fills it")
		waiting := publish(s, "waits")
		synctest.Wait()
		start := time.Now()
		s.End(1)
		if _, st := sub.Next(1, 1); st != Ended {
			t.Fatalf("status %v", st)
		}
		if r := <-waiting; r.Err != nil || time.Since(start) != 0 {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
	})
}

// B06: under Block the publisher waits for room, is told after its own wait, and the
// reader is ended after the block timeout; nothing waits for ever.
func TestBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Queue: Queue{Entries: 8, OnFull: Block}, BlockTimeout: 30 * time.Second, PublishWait: 10 * time.Second}
		s := openShard(t, cfg, nil)
		sub := subscribe(t, s, offered(1))
		for range 8 {
			mustPublish(t, s, "x")
		}
		waiting := publish(s, "waits")
		synctest.Wait()
		select {
		case r := <-waiting:
			t.Fatalf("a publish passed a full reader: %+v", r)
		default:
		}
		p, _ := sub.Next(1, 1)
		sub.Advance(p)
		if r := <-waiting; r.Err != nil || r.Offset != 8 {
			t.Fatalf("after one batch was read: %+v", r)
		}

		start := time.Now()
		told := <-publish(s, "told")
		if wait := time.Since(start); told.Err == nil || wait != cfg.PublishWait {
			t.Errorf("answered after %v with %v, want a refusal after the publish wait", wait, told.Err)
		}
		for told.Err != nil {
			told = <-publish(s, "again")
		}
		if wait := time.Since(start); wait != cfg.BlockTimeout {
			t.Errorf("the reader held publishers for %v, want the block timeout", wait)
		}
		_, st := drain(t, sub)
		if st != Ended || sub.End().Reason != EndLagged || sub.End().Next != 1 {
			t.Errorf("status %v, end %+v: want lagged at 1", st, sub.End())
		}
		if s.Info().Blocked != 2 {
			t.Errorf("blocked publishes %d, want 2", s.Info().Blocked)
		}
	})
}

// Leaving frees the publishers at once.
func TestBlockedPublisherIsFreedByAClosedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShard(t, Config{Queue: Queue{Entries: 2, OnFull: Block}}, nil)
		sub := subscribe(t, s, offered(1))
		mustPublish(t, s, "x")
		mustPublish(t, s, "x")
		waiting := publish(s, "waits")
		synctest.Wait()
		start := time.Now()
		sub.Close()
		if r := <-waiting; r.Err != nil || time.Since(start) != 0 {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
	})
}
