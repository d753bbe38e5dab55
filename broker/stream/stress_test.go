package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/seglog"
)

// asyncLog is a fakeLog that commits from a goroutine of its own, in its own time,
// is full now and then, and may be poisoned.
type asyncLog struct {
	fakeLog
	rng  *rand.Rand // of the appender
	quit chan struct{}
	done chan struct{}
}

func newAsyncLog(seed uint64, poison bool) *asyncLog {
	l := &asyncLog{rng: rand.New(rand.NewPCG(seed, 8)), quit: make(chan struct{}), done: make(chan struct{})}
	rng := rand.New(rand.NewPCG(seed, 9))
	go func() {
		defer close(l.done)
		for last := uint64(0); ; {
			select {
			case <-l.quit:
				l.mu.Lock()
				poisoned := errors.Is(l.fail, seglog.ErrPoisoned)
				l.mu.Unlock()
				if !poisoned {
					l.commit() // as a log does when it is closed
				}
				return
			default:
			}
			yieldSome(rng, []int{2, 50, 1000}[rng.IntN(3)])
			l.mu.Lock()
			next := l.next
			if l.fail = nil; rng.IntN(20) == 0 {
				l.fail = seglog.ErrDiskFull
			}
			if poison && next > 300 {
				l.fail = seglog.ErrPoisoned
			}
			fail := l.fail
			l.mu.Unlock()
			if errors.Is(fail, seglog.ErrPoisoned) {
				yieldSome(rng, 20)
				l.hooks.Committed(last, fail)
				<-l.quit
				return
			}
			if next > last {
				last = next
				l.hooks.Committed(next, nil)
			}
		}
	}()
	return l
}

func (l *asyncLog) Append(rs []seglog.Record) error {
	yieldSome(l.rng, 20)
	err := l.fakeLog.Append(rs)
	yieldSome(l.rng, 20)
	return err
}

func (l *asyncLog) close() {
	close(l.quit)
	<-l.done
}

func yieldSome(rng *rand.Rand, n int) {
	for range rng.IntN(n) {
		runtime.Gosched()
	}
}

// stress is one shard with everybody at once.
type stress struct {
	t    *testing.T
	seed uint64
	s    *Shard

	mu   sync.Mutex
	got  map[uint64]string // what readers were given, by offset
	ids  atomic.Uint64
	acks []*stressPublish
}

type stressPublish struct {
	pub     Publish
	payload string
	answers atomic.Int32
	result  Result
}

// publisher hands in batches until it has enough or the shard is closed.
func (x *stress) publisher(n uint64) {
	rng := rand.New(rand.NewPCG(x.seed, 100+n))
	burst := 1 + rng.IntN(60)
	for i := range 150 {
		p := &stressPublish{payload: fmt.Sprintf("%d/%d", n, i)}
		answered := make(chan struct{}, 2)
		size := rng.IntN(300)
		if rng.IntN(10) == 0 {
			size = rng.IntN(40 << 10)
		}
		p.pub.Records = records(p.payload+" "+string(make([]byte, size)), p.payload+" second")
		if rng.IntN(4) == 0 {
			p.pub.HasProducer, p.pub.Producer, p.pub.Sequence = true, x.ids.Add(1), 0
		}
		p.pub.Done = func(r Result) {
			if p.answers.Add(1) == 1 {
				p.result = r
			}
			answered <- struct{}{}
		}
		x.mu.Lock()
		x.acks = append(x.acks, p)
		x.mu.Unlock()
		x.s.Publish(&p.pub)
		if i%burst == 0 {
			<-answered
			if errors.Is(p.result.Err, ErrClosed) {
				return
			}
		}
		if burst < 20 {
			yieldSome(rng, 20)
		}
	}
}

// reader follows the shard until it is closed, leaves and comes back on the way.
func (x *stress) reader(n uint64) {
	rng := rand.New(rand.NewPCG(x.seed, 200+n))
	wake := make(waker, 1)
	x.s.Watch(wake)
	defer x.s.Unwatch(wake)
	o := SubscribeOptions{Offsets: true, Skips: true, Lagged: rng.IntN(2) == 0}
	for next := uint64(0); ; {
		sub, err := x.s.Subscribe(from(x.ids.Add(1), o, next))
		var cursor *CursorError
		switch {
		case errors.As(err, &cursor):
			next = cursor.Available
			continue
		case errors.Is(err, ErrClosed):
			return
		case err != nil:
			x.t.Errorf("subscribe at %d: %v", next, err)
			return
		}
		sub.OnStop(func(EndReason) { wake.Wake() })
		var over bool
		next, over = x.read(rng, sub, wake, next)
		sub.Close()
		if over {
			return
		}
	}
}

func (x *stress) read(rng *rand.Rand, sub *Subscription, wake waker, next uint64) (uint64, bool) {
	for rng.IntN(200) > 0 {
		dropped := sub.Info().Dropped
		p, st := sub.Next(1+rng.IntN(4<<10), 1+rng.IntN(16<<10))
		dropped = sub.Info().Dropped - dropped
		switch st {
		case Ended:
			e := sub.End()
			expected := e.Reason == EndRemoved || e.Reason == EndShutdown || (e.Reason == EndLagged && sub.Lagged())
			if !expected || (e.Next != next && e.Next != next+dropped) {
				x.t.Errorf("reader at %d ended with %+v", next, e)
			}
			return e.Next, e.Reason == EndShutdown
		case Idle:
			next += dropped
			if !sub.Changed() {
				<-wake
			}
			continue
		case Ready:
		case Large:
			x.t.Errorf("a small frame needs %d bytes", sub.Need())
			return next, false
		}
		yieldSome(rng, 30)
		for _, e := range decode(x.t, p.Bytes) {
			if e.Offset != next+dropped {
				x.t.Errorf("reader got %d, want %d after dropping %d", e.Offset, next, dropped)
			}
			next, dropped = e.Offset+1, 0
			word, _, _ := strings.Cut(e.Payload, " ")
			x.mu.Lock()
			if was, ok := x.got[e.Offset]; ok && was != word {
				x.t.Errorf("offset %d is %q and %q", e.Offset, was, word)
			}
			x.got[e.Offset] = word
			x.mu.Unlock()
		}
		sub.Advance(p)
	}
	return next, false
}

// Everybody at once, with tiny rings and queues, until the shard is closed in the
// middle: every publish is answered exactly once, no offset is given twice, and
// readers see at each offset what its publisher was told is there (B16, B25).
func TestShardUnderStress(t *testing.T) {
	first := rand.Uint64()
	for i := range 12 {
		seed := first + uint64(i)
		if !t.Run("", func(t *testing.T) { runStress(t, seed, i) }) {
			t.Fatalf("seed %d, kind %d", seed, i)
		}
	}
}

func runStress(t *testing.T, seed uint64, kind int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := Config{
		TailBytes: 1 << (10 + rng.IntN(8)), BatchEvents: 1 + rng.IntN(8),
		Queue:        Queue{Entries: 1 + rng.IntN(8), Bytes: 1 << (10 + rng.IntN(8)), OnFull: []OnFull{DropNew, Block, CatchUp}[kind%3]},
		BlockTimeout: 3 * time.Millisecond, PublishWait: time.Millisecond, PollInterval: 10 * time.Millisecond,
	}
	var log *asyncLog
	var open func(Hooks) (Log, error)
	if kind%2 == 1 || cfg.Queue.OnFull == CatchUp {
		log = newAsyncLog(seed, rng.IntN(2) == 0)
		open = func(h Hooks) (Log, error) { log.hooks = h; return log, nil }
	}
	s, err := Open(cfg, open)
	if err != nil {
		t.Fatal(err)
	}
	x := &stress{t: t, seed: seed, s: s, got: make(map[uint64]string)}
	var all sync.WaitGroup
	for n := range uint64(4) {
		all.Go(func() { x.publisher(n) })
	}
	for n := range uint64(6) {
		all.Go(func() { x.reader(n) })
	}
	all.Go(func() { // an operator
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 100 {
			yieldSome(rng, 100)
			s.End(x.ids.Load() - rng.Uint64N(4))
			s.Info()
			s.Subscriptions()
		}
	})
	time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
	patience := time.Duration(rng.IntN(2)) * 20 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Close(ctx, EndShutdown); err != nil && patience > 0 {
		t.Errorf("close: %v", err)
	}
	if log != nil {
		log.close()
	}
	all.Wait()
	x.verify()
}

func (x *stress) verify() {
	taken := make(map[uint64]string)
	for _, p := range x.acks {
		if n := p.answers.Load(); n != 1 {
			x.t.Errorf("%s was answered %d times", p.payload, n)
			continue
		}
		if err := p.result.Err; err != nil {
			e, ok := errors.AsType[*Error](err)
			expected := errors.Is(err, ErrClosed) || errors.Is(err, seglog.ErrDiskFull) || errors.Is(err, seglog.ErrPoisoned)
			if !expected && (!ok || e.Reason != "subscriber_blocking") {
				x.t.Errorf("%s: %v", p.payload, err)
			}
			continue
		}
		for o := p.result.Offset; o < p.result.Offset+2; o++ {
			if was, ok := taken[o]; ok {
				x.t.Errorf("offset %d was given to %s and %s", o, was, p.payload)
			}
			taken[o] = p.payload
			if got, ok := x.got[o]; ok && got != p.payload {
				x.t.Errorf("offset %d was read as %s, and is %s", o, got, p.payload)
			}
		}
	}
	for o, got := range x.got {
		if taken[o] != got {
			x.t.Errorf("offset %d was read as %s, acknowledged as %q: only committed records may be read", o, got, taken[o])
		}
	}
	if n := x.s.Info().Subscriptions; n != 0 {
		x.t.Errorf("%d subscriptions are left", n)
	}
}
