package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// While a sync is under way, what arrives waits for it and then shares one append.
func TestPublishesShareTheNextAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLog{}
		s := openShard(t, Config{}, l)
		first := publish(s, "0")
		var rest []<-chan Result
		for i := range 20 {
			rest = append(rest, publish(s, fmt.Sprint(i+1)))
		}
		if l.appends != 1 {
			t.Fatalf("%d appends before the first commit, want 1", l.appends)
		}
		if s.Mark() != 0 {
			t.Fatalf("mark %d before the commit", s.Mark())
		}
		l.commit()
		synctest.Wait()
		if r := <-first; r.Err != nil || r.Offset != 0 {
			t.Fatalf("first: %+v", r)
		}
		if l.appends != 2 || len(l.records) != 2 {
			t.Errorf("%d appends of %d records, want the 20 in one frame of the second", l.appends, len(l.records))
		}
		l.commit()
		synctest.Wait()
		for i, c := range rest {
			if r := <-c; r.Err != nil || r.Offset != uint64(i+1) {
				t.Errorf("publish %d: %+v", i+1, r)
			}
		}
	})
}

// A full claim is written while the last one is still being synced.
func TestAFullClaimIsPipelined(t *testing.T) {
	l := &fakeLog{}
	s := openShard(t, Config{}, l)
	publish(s, "0")
	for range claimPublishes {
		publish(s, "x")
	}
	if l.appends != 2 {
		t.Errorf("%d appends, want the full claim written before the first commit", l.appends)
	}
	s.logCommitted(claimPublishes, nil) // a part of a claim is not committed
	if s.Mark() != 1 {
		t.Errorf("mark %d, want the first claim alone", s.Mark())
	}
	l.commit()
	if s.Mark() != claimPublishes+1 {
		t.Errorf("mark %d after one commit of both claims", s.Mark())
	}
}

// A refused append fails exactly its publishes; the next ones take its offsets.
func TestARefusedAppendLeavesNothing(t *testing.T) {
	l := &fakeLog{auto: true}
	s := openShard(t, Config{}, l)
	sub := subscribe(t, s, offered(1))
	mustPublish(t, s, "a")
	l.fail = fmt.Errorf("append: %w", seglog.ErrDiskFull)
	r := <-publish(s, "refused")
	var e *Error
	if !errors.As(r.Err, &e) || e.Code != wire.CodeOverloaded || e.Retry != wire.RetryAfter || !errors.Is(r.Err, seglog.ErrDiskFull) {
		t.Errorf("a full disk answers %v", r.Err)
	}
	l.fail = nil
	if off := mustPublish(t, s, "b"); off != 1 {
		t.Errorf("the next publish got offset %d, want 1", off)
	}
	got, _ := drain(t, sub)
	if d := cmp.Diff([]event{{0, "a", 0}, {1, "b", 0}}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// A log that fails while it is given a claim still reads it: the claim is not used
// again before Append has returned.
func TestAClaimStaysWhileItIsAppended(t *testing.T) {
	l := &fakeLog{}
	s := openShard(t, Config{}, l)
	l.during = func(rs []seglog.Record) {
		s.logCommitted(0, errors.New("sync: input/output error")) // an earlier flush
		mustPublish(t, openShard(t, Config{}, nil), "of another shard, with the next free claim")
		if rs[0].Kind != seglog.KindEvents || rs[0].Count != 1 || len(rs[0].Frame) == 0 {
			t.Errorf("the record under way became %+v", rs[0])
		}
	}
	var e *Error
	if r := <-publish(s, "x"); !errors.As(r.Err, &e) || e.Retry != wire.RetryOutcomeUnknown {
		t.Errorf("told %v", r.Err)
	}
}

// B12, on disk: an event waits for the flush under way and its own, however often
// events come; nothing counts from the last one.
func TestNoEventWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, flush = 190 * time.Microsecond, 250 * time.Microsecond
		l := &fakeLog{}
		s := openShard(t, Config{}, l)
		stop := make(chan struct{})
		var flusher sync.WaitGroup
		defer flusher.Wait()
		defer close(stop)
		flusher.Go(func() { // flushes whenever something is not flushed, as a log does
			for next := uint64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				if time.Sleep(time.Microsecond); l.Next() > next {
					next = l.Next()
					time.Sleep(flush)
					s.logCommitted(next, nil)
				}
			}
		})
		var mu sync.Mutex
		var worst time.Duration
		for range 5000 {
			start := time.Now()
			s.Publish(&Publish{Records: records("x"), Done: func(Result) {
				mu.Lock()
				defer mu.Unlock()
				worst = max(worst, time.Since(start))
			}})
			time.Sleep(every)
		}
		mu.Lock()
		defer mu.Unlock()
		if worst < flush || worst > 2*flush+2*time.Microsecond {
			t.Errorf("an event waited %v, two flushes take %v", worst, 2*flush)
		}
	})
}

// B12: a lone event is on its way at once; there is no timer to wait for.
func TestALoneEventDoesNotWait(t *testing.T) {
	s := openShard(t, Config{}, nil)
	for i := range 10 {
		c := publish(s, "x")
		select {
		case r := <-c:
			if r.Offset != uint64(i) {
				t.Errorf("offset %d, want %d", r.Offset, i)
			}
		default:
			t.Fatal("a lone publish was not committed by the time Publish returned")
		}
	}
}

func idempotent(s *Shard, id, seq uint64, payloads ...string) <-chan Result {
	c := make(chan Result, 1)
	s.Publish(&Publish{Records: records(payloads...), HasProducer: true, Producer: id, Sequence: seq, Done: func(r Result) { c <- r }})
	return c
}

// B16, B25: whatever the schedule, every reader sees start..end with no hole and no
// repeat, or is told an exact offset to go on at.
func TestReadersSeeEveryRecordOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const publishers, each, readers = 4, 500, 20
	for _, onFull := range []OnFull{DropNew, CatchUp} {
		t.Run(onFull.String(), func(t *testing.T) {
			l := &fakeLog{auto: true}
			s := openShard(t, Config{Queue: Queue{Entries: 8, OnFull: onFull}, TailBytes: 32 << 10, BatchEvents: 5}, l)
			var all sync.WaitGroup
			for p := range publishers {
				all.Go(func() {
					for i := range each {
						<-publish(s, fmt.Sprintf("%d/%d", p, i))
					}
				})
			}
			total := uint64(publishers * each)
			for r := range readers {
				start := rng.Uint64N(total / 2)
				all.Go(func() { readTo(t, s, uint64(r), start, total) })
			}
			all.Wait()
		})
	}
}

// readTo reads from start to end, resuming where it is told to.
func readTo(t *testing.T, s *Shard, id, start, end uint64) {
	next, wake := start, make(waker, 1)
	s.Watch(wake)
	defer s.Unwatch(wake)
	for s.Mark() < start {
		<-wake
	}
	for resumes := uint64(1); next < end; resumes++ {
		sub, err := s.Subscribe(from(id+resumes<<32, offered(0), next))
		if err != nil {
			t.Errorf("reader %d resumes at %d: %v", id, next, err)
			return
		}
		for next < end {
			p, st := sub.Next(512, 2048)
			if st == Ended {
				if e := sub.End(); e.Reason != EndLagged || e.Next != next {
					t.Errorf("reader %d at %d ended with %+v", id, next, e)
				}
				break
			}
			if st == Idle {
				if !sub.Changed() {
					<-wake
				}
				continue
			}
			for _, e := range decode(t, p.Bytes) {
				if e.Offset != next {
					t.Errorf("reader %d got %d, want %d", id, e.Offset, next)
					return
				}
				next++
			}
			sub.Advance(p)
		}
		sub.Close()
	}
}

type waker chan struct{}

func (w waker) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// B17: a memory shard hands out no offset that is not reserved, so that offsets never
// restart after a crash.
func TestMemoryOffsetsAreReserved(t *testing.T) {
	mark, asked, fail := uint64(100), 0, error(nil)
	s := openShard(t, Config{First: 100, Reserve: func(upTo uint64) (uint64, error) {
		asked++
		if fail == nil {
			mark = upTo + 10
		}
		return mark, fail
	}}, nil)
	for range 50 {
		if off := mustPublish(t, s, "x", "y"); off+2 > mark {
			t.Fatalf("offset %d was handed out, reserved is %d", off+1, mark)
		}
	}
	if asked > 10 {
		t.Errorf("asked %d times for 100 offsets in steps of 10", asked)
	}
	fail = errors.New("disk full")
	var e *Error
	for range 20 {
		if r := <-publish(s, "x"); r.Err != nil {
			if !errors.As(r.Err, &e) || e.Code != wire.CodeStorage || e.Retry != wire.RetryAfter {
				t.Errorf("refused with %v", r.Err)
			}
			return
		}
	}
	t.Error("offsets were handed out beyond the mark")
}

func BenchmarkPublishMemory(b *testing.B) {
	s, err := Open(Config{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	p := &Publish{Records: records(string(make([]byte, 256))), Done: func(Result) {}}
	b.ReportAllocs()
	for b.Loop() {
		s.Publish(p)
	}
}

// The publish path of a memory stream allocates for the ring only.
func TestPublishAllocations(t *testing.T) {
	s := openShard(t, Config{}, nil)
	p := &Publish{Records: records("x"), Done: func(Result) {}}
	if n := testing.AllocsPerRun(5000, func() { s.Publish(p) }); n > 0 {
		t.Errorf("%v allocations per publish, want 0", n)
	}
}
