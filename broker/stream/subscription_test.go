package stream

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/seglog"
)

func offered(id uint64) SubscribeOptions {
	return SubscribeOptions{ID: id, Offsets: true, Skips: true, Lagged: true}
}

func from(id uint64, o SubscribeOptions, start uint64) SubscribeOptions {
	o.ID, o.Start = id, at(start)
	return o
}

func TestReadsHistoryThenLive(t *testing.T) {
	for name, l := range map[string]*fakeLog{"durable": {auto: true}, "memory": nil} {
		t.Run(name, func(t *testing.T) {
			s := openShard(t, Config{}, l)
			mustPublish(t, s, "a", "b")
			o := offered(1)
			o.Start = earliest
			sub := subscribe(t, s, o)
			mustPublish(t, s, "c")
			got, st := drain(t, sub)
			want := []event{{0, "a", 0}, {1, "b", 0}, {2, "c", 0}}
			if d := cmp.Diff(want, got); d != "" || st != Idle {
				t.Errorf("status %v, events (-want +got):\n%s", st, d)
			}
			if sub.StartOffset() != 0 || sub.LiveOffset() != 2 {
				t.Errorf("start %d live %d, want 0 and 2", sub.StartOffset(), sub.LiveOffset())
			}
			mustPublish(t, s, "d")
			if !sub.Changed() {
				t.Error("a commit after Idle is not seen as a change")
			}
			got, _ = drain(t, sub)
			if d := cmp.Diff([]event{{3, "d", 0}}, got); d != "" {
				t.Errorf("live events (-want +got):\n%s", d)
			}
		})
	}
}

// What people are told a subscription is at (B04: who is slow?).
func TestStates(t *testing.T) {
	now := time.Unix(1000, 0)
	s := openShard(t, Config{TailBytes: 1, Now: func() time.Time { return now }}, &fakeLog{auto: true})
	big := string(make([]byte, 300<<10))
	mustPublish(t, s, big)
	mustPublish(t, s, big)
	o := offered(1)
	o.Start = earliest
	sub := subscribe(t, s, o)
	want := func(st State) {
		t.Helper()
		if got := sub.Info().State; got != st {
			t.Errorf("state %v, want %v", got, st)
		}
	}
	want(Waiting)
	p, _ := sub.Next(1, 1)
	want(Behind)
	now = now.Add(time.Second + 1)
	want(Blocked)
	sub.Advance(p)
	want(Behind)
	p, _ = sub.Next(1, 1)
	want(Live)
	sub.Advance(p)
	if _, st := sub.Next(1, 1); st != Idle {
		t.Fatalf("status %v", st)
	}
	want(Waiting)

	// One that is over is blocked while its notice does not go out.
	mustPublish(t, s, "x")
	p, _ = sub.Next(1, 1)
	for range s.cfg.Queue.Entries + 2 {
		mustPublish(t, s, "x")
	}
	sub.Advance(p)
	for st := Ready; st != Ended; {
		if p, st = sub.Next(1<<20, 1<<20); st == Ready {
			sub.Advance(p)
		}
	}
	if r := sub.End().Reason; r != EndLagged {
		t.Fatalf("it ended as %v", r)
	}
	now = now.Add(time.Second + 1)
	want(Blocked)
}

// B14: a stored "first unseen" offset is delivered first, not the one before it.
func TestResumeIsExact(t *testing.T) {
	s := openShard(t, Config{}, &fakeLog{auto: true})
	for i := range 12 {
		mustPublish(t, s, fmt.Sprint(i))
	}
	for _, start := range []uint64{9, 10} {
		got, _ := drain(t, subscribe(t, s, from(start, offered(0), start)))
		if len(got) == 0 || got[0].Offset != start || got[0].Payload != fmt.Sprint(start) {
			t.Errorf("resume at %d begins with %+v", start, got)
		}
	}
}

// B14, entered in the middle of a batch.
func TestResumeInsideABatch(t *testing.T) {
	for name, l := range map[string]*fakeLog{"durable": {auto: true}, "memory": nil} {
		t.Run(name, func(t *testing.T) {
			s := openShard(t, Config{}, l)
			mustPublish(t, s, "a", "b", "c")
			got, _ := drain(t, subscribe(t, s, from(1, offered(0), 1)))
			if d := cmp.Diff([]event{{1, "b", 0}, {2, "c", 0}}, got); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}

// B29, B46: both ends of the log refuse with what they have.
func TestCursorOutsideTheLog(t *testing.T) {
	l := &fakeLog{auto: true}
	s := openShard(t, Config{}, l)
	for range 5 {
		mustPublish(t, s, "x")
	}
	l.mu.Lock()
	l.oldest = 3
	l.mu.Unlock()
	for _, tc := range []struct {
		at   uint64
		want CursorError
	}{
		{2, CursorError{TooOld, 2, 3}},
		{101, CursorError{InFuture, 101, 5}},
	} {
		_, err := s.Subscribe(from(1, offered(0), tc.at))
		var got *CursorError
		if !errors.As(err, &got) || *got != tc.want {
			t.Errorf("subscribe at %d: %v, want %v", tc.at, err, tc.want)
		}
	}
	o := offered(2)
	o.Start = earliest
	if sub := subscribe(t, s, o); sub.StartOffset() != 3 {
		t.Errorf("earliest starts at %d, want the oldest kept offset 3", sub.StartOffset())
	}
}

// B27: hidden records take an offset, are never delivered, and are reported.
func TestHiddenRecords(t *testing.T) {
	hide := func(t *testing.T, s *Shard) {
		t.Helper()
		c := make(chan Result, 1)
		s.StartGeneration([]byte("g"), func(r Result) { c <- r })
		if r := <-c; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for name, l := range map[string]*fakeLog{"durable": {auto: true}, "memory": nil} {
		t.Run(name, func(t *testing.T) {
			s := openShard(t, Config{}, l)
			live := subscribe(t, s, offered(1))
			mustPublish(t, s, "a")
			hide(t, s)
			exact := subscribe(t, s, from(2, offered(0), 1))
			if got, st := drain(t, exact); len(got) != 0 || st != Idle {
				t.Errorf("a reader at the hidden record: %v, %v", got, st)
			}
			if exact.LiveOffset() != 2 {
				t.Errorf("live offset %d, want 2: it must be reachable behind a hidden end", exact.LiveOffset())
			}
			hide(t, s)
			mustPublish(t, s, "b")
			want := []event{{0, "a", 0}, {3, "b", 2}}
			got, _ := drain(t, live)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("live reader (-want +got):\n%s", d)
			}
			got, _ = drain(t, exact)
			if d := cmp.Diff([]event{{3, "b", 2}}, got); d != "" {
				t.Errorf("reader from the hidden record (-want +got):\n%s", d)
			}
			o := offered(3)
			o.Start = earliest
			got, _ = drain(t, subscribe(t, s, o))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("reader of history (-want +got):\n%s", d)
			}
			plain := SubscribeOptions{ID: 4, Start: earliest}
			got, _ = drain(t, subscribe(t, s, plain))
			if d := cmp.Diff([]event{{0, "a", 0}, {0, "b", 0}}, got); d != "" {
				t.Errorf("reader without offsets (-want +got):\n%s", d)
			}
		})
	}
}

// B27: hidden records before the first event of a memory stream, and between chunks
// that are evicted, are no loss.
func TestHiddenRecordsAtTheEdgesOfTheRing(t *testing.T) {
	big := string(make([]byte, 100<<10))
	hide := func(s *Shard) { s.StartGeneration([]byte("g"), func(Result) {}) }
	t.Run("before the first event", func(t *testing.T) {
		s := openShard(t, Config{First: 7}, nil)
		sub := subscribe(t, s, offered(1))
		hide(s)
		if got, st := drain(t, sub); len(got) != 0 || st != Idle {
			t.Fatalf("got %v, status %v, end %+v", got, st, sub.End())
		}
		again := subscribe(t, s, from(2, offered(0), 7))
		hide(s)
		mustPublish(t, s, "a")
		for _, r := range []*Subscription{sub, again, subscribe(t, s, from(3, offered(0), 7))} {
			got, st := drain(t, r)
			if d := cmp.Diff([]event{{9, "a", 2}}, got); d != "" || st != Idle {
				t.Errorf("status %v, end %+v, events (-want +got):\n%s", st, r.End(), d)
			}
		}
		if o := s.Oldest(); o != 7 {
			t.Errorf("oldest %d, want 7: nothing is gone", o)
		}
	})
	t.Run("behind an evicted chunk", func(t *testing.T) {
		s := openShard(t, Config{TailBytes: 1}, nil)
		sub := subscribe(t, s, offered(1))
		mustPublish(t, s, big)
		drain(t, sub)
		hide(s)
		mustPublish(t, s, "b") // evicts the chunk that the reader stands at the end of
		got, st := drain(t, sub)
		if d := cmp.Diff([]event{{2, "b", 1}}, got); d != "" || st != Idle {
			t.Errorf("status %v, end %+v, events (-want +got):\n%s", st, sub.End(), d)
		}
		if o := s.Oldest(); o != 1 {
			t.Errorf("oldest %d, want 1: only the first record is gone", o)
		}
	})
}

// B27: a log that was written by a cluster already has hidden records when it opens.
func TestOpensALogWithHiddenRecords(t *testing.T) {
	old := &fakeLog{auto: true}
	first, err := Open(Config{}, func(h Hooks) (Log, error) { old.hooks = h; return old, nil })
	if err != nil {
		t.Fatal(err)
	}
	mustPublish(t, first, "a")
	first.StartGeneration([]byte("g"), func(Result) {})
	if err := first.Close(t.Context(), EndShutdown); err != nil {
		t.Fatal(err)
	}
	s := openShard(t, Config{}, old)
	o := offered(1)
	o.Start = earliest
	sub := subscribe(t, s, o)
	got, st := drain(t, sub)
	if d := cmp.Diff([]event{{0, "a", 0}}, got); d != "" || st != Idle {
		t.Errorf("status %v, events (-want +got):\n%s", st, d)
	}
	if sub.Info().Next != 2 {
		t.Errorf("next is %d, want 2: past the hidden end", sub.Info().Next)
	}
	mustPublish(t, s, "b")
	got, _ = drain(t, sub)
	if d := cmp.Diff([]event{{2, "b", 1}}, got); d != "" {
		t.Errorf("after the hidden end (-want +got):\n%s", d)
	}
}

// A reader of history whose segment went is told, never moved.
func TestRetentionTakesWhatAReaderNeeds(t *testing.T) {
	l := &fakeLog{auto: true}
	s := openShard(t, Config{TailBytes: 1}, l)
	for range 20 {
		mustPublish(t, s, string(make([]byte, 100<<10)))
	}
	sub := subscribe(t, s, from(1, offered(0), 2))
	p, _ := sub.Next(1, 1)
	sub.Advance(p)
	l.mu.Lock()
	l.oldest = 10
	l.mu.Unlock()
	_, st := sub.Next(1, 1)
	var old *seglog.TooOldError
	if e := sub.End(); st != Ended || e.Reason != EndTooOld || e.Next != 3 || !errors.As(e.Err, &old) {
		t.Errorf("status %v, end %+v: want too_old at 3", st, e)
	}
}

// What a reader needed to read history or to convert it is not kept while it waits.
func TestAnIdleReaderHoldsNoBuffers(t *testing.T) {
	old := &fakeLog{auto: true}
	first := openShard(t, Config{}, old)
	for range 10 {
		mustPublish(t, first, string(make([]byte, 100<<10)))
	}
	s := openShard(t, Config{}, old) // nothing is in its ring
	o := SubscribeOptions{ID: 1, Start: earliest}
	sub := subscribe(t, s, o)
	if got, st := drain(t, sub); len(got) != 10 || st != Idle {
		t.Fatalf("%d records, status %v", len(got), st)
	}
	if sub.page != nil || sub.rest != nil || cap(sub.conv) > keptConv {
		t.Errorf("idle with a page of %d and a buffer of %d bytes", cap(sub.page), cap(sub.conv))
	}
}

// What a commit shows before it has moved the mark is not delivered yet: a client
// that resumed behind it at once would be told that it is in the future.
func TestReadersStopAtTheMark(t *testing.T) {
	for name, hidden := range map[string]uint64{"same chunk": 0, "behind a hidden record": 1} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLog{}
			s := openShard(t, Config{BatchEvents: 1}, l)
			sub := subscribe(t, s, offered(1))
			publish(s, "a")
			l.commit()
			for range hidden {
				s.StartGeneration([]byte("g"), func(Result) {}) // a new chunk follows
			}
			for range claimPublishes + 1 - hidden { // two claims in all
				publish(s, "b")
			}
			for _, c := range s.queue.inflight {
				for _, f := range c.frames { // the committer is on its way
					s.tail.show(f.c, f.upTo, f.entries)
				}
			}
			for range 2 {
				if got, st := drain(t, sub); len(got) > 1 || st != Idle || sub.Info().Next != 1 {
					t.Fatalf("mark %d: got %v, status %v, next %d", s.Mark(), got, st, sub.Info().Next)
				}
			}
			l.commit()
			if got, _ := drain(t, sub); len(got) != int(s.Mark()-1-hidden) || got[0].Offset != 1+hidden || got[0].Skipped != hidden {
				t.Errorf("mark %d: got %v after the commit", s.Mark(), got)
			}
		})
	}
}
