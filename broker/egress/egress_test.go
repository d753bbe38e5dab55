package egress

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// fakeStream is a QUIC send stream with credit for so many bytes.
type fakeStream struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	changed  sync.Cond
	credit   int
	direct   int // successful TryWriteAll
	got      []byte
	deadline time.Time
	timer    *time.Timer
	fin      bool
	reset    *quic.StreamErrorCode
}

func newFakeStream(credit int) *fakeStream {
	f := &fakeStream{credit: credit}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.changed.L = &f.mu
	return f
}

func (f *fakeStream) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(b) {
		if f.reset != nil || f.fin || f.ctx.Err() != nil {
			return n, context.Canceled
		}
		if take := min(f.credit, len(b)-n); take > 0 {
			f.got = append(f.got, b[n:n+take]...)
			f.credit -= take
			n += take
			continue
		}
		if !f.deadline.IsZero() && !time.Now().Before(f.deadline) {
			return n, os.ErrDeadlineExceeded
		}
		f.changed.Wait()
	}
	return n, nil
}

func (f *fakeStream) TryWriteAll(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.credit < len(b) || f.reset != nil || f.fin || f.ctx.Err() != nil {
		return quic.ErrWouldBlock
	}
	f.direct++
	f.got = append(f.got, b...)
	f.credit -= len(b)
	return nil
}

func (f *fakeStream) SetWriteDeadline(d time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deadline = d
	if f.timer != nil {
		f.timer.Stop()
	}
	f.timer = time.AfterFunc(time.Until(d), f.changed.Broadcast)
	f.changed.Broadcast()
	return nil
}

func (f *fakeStream) end(set func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	set()
	f.cancel()
	f.changed.Broadcast()
}

func (f *fakeStream) Close() error                       { f.end(func() { f.fin = true }); return nil }
func (f *fakeStream) CancelWrite(c quic.StreamErrorCode) { f.end(func() { f.reset = &c }) }
func (f *fakeStream) Context() context.Context           { return f.ctx }

// drop is the client's STOP_SENDING.
func (f *fakeStream) drop() { f.end(func() {}) }

func (f *fakeStream) grant(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.credit += n
	f.changed.Broadcast()
}

// offsets decodes whole event frames; rest is what follows the last of them.
func (f *fakeStream) offsets(t *testing.T) (got []uint64, notice *wire.SubscriptionLagged, rest int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.got
	for len(b) >= wire.HeaderLen {
		h, err := wire.ParseHeader(b)
		if err != nil {
			t.Fatalf("frame boundary lost: %v", err)
		}
		size := wire.HeaderLen + int(h.Length)
		if size > len(b) {
			break
		}
		payload := b[wire.HeaderLen:size]
		if h.Flags == 0 {
			m, err := wire.DecodeMessage(payload)
			if err != nil {
				t.Fatal(err)
			}
			notice, _ = m.(*wire.SubscriptionLagged)
		} else {
			e, err := wire.DecodeEvents(h.Flags, payload)
			if err != nil {
				t.Fatal(err)
			}
			for i := range e.Records.Count {
				got = append(got, e.Base+uint64(i))
			}
		}
		b = b[size:]
	}
	return got, notice, len(b)
}

type fixture struct {
	*Engine
	shard *stream.Shard
	conn  *Conn
	ids   uint64
}

func newFixture(t *testing.T, cfg Config, sc stream.Config) *fixture {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stream.Open(sc, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background(), stream.EndShutdown); err != nil {
			t.Error(err)
		}
		e.Close()
	})
	return &fixture{Engine: e, shard: s, conn: e.NewConn(1)}
}

// run starts a subscription; its end arrives on the channel.
func (x *fixture) run(t *testing.T, w Writer) (*stream.Subscription, <-chan stream.End) {
	t.Helper()
	x.ids++
	sub, err := x.shard.Subscribe(stream.SubscribeOptions{ID: x.ids, Offsets: true, Skips: true, Lagged: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan stream.End, 1)
	x.Start(x.conn, sub, w, func(e stream.End) { ended <- e })
	return sub, ended
}

func (x *fixture) publish(t *testing.T, size int) {
	t.Helper()
	done := make(chan stream.Result, 1)
	r := wire.Records{Count: 1, Bytes: wire.AppendRecord(nil, make([]byte, size))}
	x.shard.Publish(&stream.Publish{Records: r, Done: func(r stream.Result) { done <- r }})
	if r := <-done; r.Err != nil {
		t.Fatal(r.Err)
	}
}

func consecutive(t *testing.T, got []uint64, n int) {
	t.Helper()
	if len(got) != n {
		t.Errorf("%d records, want %d", len(got), n)
	}
	for i, o := range got {
		if o != uint64(i) {
			t.Fatalf("record %d has offset %d", i, o)
		}
	}
}

func TestDeliversInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{})
		var ws []*fakeStream
		for range 40 { // more than a committer wakes itself
			w := newFakeStream(1 << 30)
			ws = append(ws, w)
			x.run(t, w)
		}
		for range 100 {
			x.publish(t, 200)
			synctest.Wait()
		}
		for _, w := range ws {
			got, _, rest := w.offsets(t)
			consecutive(t, got, 100)
			if rest != 0 {
				t.Errorf("%d bytes of half a frame", rest)
			}
		}
	})
}

// A lone small frame reaches idle readers without waking them; frames that come
// close together, or are large, wake them.
func TestLoneFramesAreWrittenDirectly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{})
		w := newFakeStream(1 << 30)
		x.run(t, w)
		synctest.Wait()
		for range 10 {
			time.Sleep(time.Millisecond)
			x.publish(t, 100)
			synctest.Wait()
		}
		if w.direct != 10 || x.Stats().Wakeups != 0 {
			t.Errorf("%d direct writes, %d wake-ups, want 10 and 0", w.direct, x.Stats().Wakeups)
		}
		x.publish(t, 100) // at the same moment as the last
		time.Sleep(time.Millisecond)
		x.publish(t, 10<<10)
		synctest.Wait()
		if w.direct != 10 || x.Stats().Wakeups != 2 {
			t.Errorf("%d direct writes, %d wake-ups, want 10 and 2", w.direct, x.Stats().Wakeups)
		}
		got, _, _ := w.offsets(t)
		consecutive(t, got, 12)
	})
}

// A write that makes no progress ends that subscription only, at the first offset
// that did not go out; half a frame is followed by nothing (B02, B04, B67).
func TestSlowConsumerIsResetAtItsOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{SlowConsumerTimeout: 30 * time.Second}, stream.Config{})
		slow, fast := newFakeStream(1000), newFakeStream(1<<30)
		_, ended := x.run(t, slow)
		x.run(t, fast)
		for range 10 {
			x.publish(t, 300)
			synctest.Wait()
		}
		start := time.Now()
		e := <-ended
		if e.Reason != stream.EndSlow || e.Next != 3 {
			t.Errorf("end %+v, want slow at 3: three frames of 328 bytes fit a credit of 1000", e)
		}
		if wait := time.Since(start); wait < 30*time.Second || wait > 35*time.Second {
			t.Errorf("ended after %v, want the slow consumer timeout", wait)
		}
		if slow.reset == nil || *slow.reset != ResetLost {
			t.Errorf("reset code %v, want %d", slow.reset, ResetLost)
		}
		got, _, _ := slow.offsets(t)
		consecutive(t, got, 3)
		before := len(slow.got)
		x.publish(t, 300)
		synctest.Wait()
		if len(slow.got) != before {
			t.Error("something was written behind half a frame")
		}
		got, _, _ = fast.offsets(t)
		consecutive(t, got, 11)
	})
}

// Progress within the timeout keeps a slow reader, however large the frame.
func TestProgressIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{SlowConsumerTimeout: 30 * time.Second}, stream.Config{})
		w := newFakeStream(0)
		x.run(t, w)
		x.publish(t, 1<<20)
		for range 40 {
			time.Sleep(20 * time.Second)
			w.grant(stepBytes)
		}
		synctest.Wait()
		got, _, rest := w.offsets(t)
		consecutive(t, got, 1)
		if rest != 0 || w.reset != nil {
			t.Errorf("rest %d, reset %v", rest, w.reset)
		}
	})
}

// Past the bound the notice names the first offset that did not go out, and FIN
// follows it, so that it can be read (B69).
func TestLagNoticeThenFIN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{Queue: stream.Queue{Entries: 8}})
		w := newFakeStream(100)
		_, ended := x.run(t, w)
		for range 50 {
			x.publish(t, 200)
			synctest.Wait()
		}
		w.grant(1 << 30)
		e := <-ended
		got, notice, rest := w.offsets(t)
		if notice == nil || notice.ResumeFrom != e.Next || rest != 0 {
			t.Fatalf("end %+v, notice %+v, rest %d", e, notice, rest)
		}
		consecutive(t, got, int(e.Next))
		if !w.fin || w.reset != nil {
			t.Errorf("fin %v reset %v, want a clean end", w.fin, w.reset)
		}
	})
}

// A client that drops its stream frees the subscription without a next record.
func TestDropIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{})
		w := newFakeStream(0)
		_, ended := x.run(t, w)
		synctest.Wait()
		start := time.Now()
		w.drop()
		if e := <-ended; e.Reason != stream.EndCancelled || time.Since(start) != 0 {
			t.Errorf("end %+v after %v", e, time.Since(start))
		}
	})
}

// An operator ends a subscription whose write is blocked.
func TestRemovedWhileBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{})
		w := newFakeStream(0)
		sub, ended := x.run(t, w)
		x.publish(t, 100)
		synctest.Wait()
		x.shard.End(sub.ID())
		if e := <-ended; e.Reason != stream.EndRemoved || w.reset == nil {
			t.Errorf("end %+v, reset %v", e, w.reset)
		}
	})
}

// B21: the rest of a deleted stream is delivered before FIN.
func TestDeletedStreamEndsInFIN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{})
		w := newFakeStream(0)
		_, ended := x.run(t, w)
		for range 3 {
			x.publish(t, 100)
		}
		if err := x.shard.Close(context.Background(), stream.EndDeleted); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		w.grant(1 << 20)
		if e := <-ended; e.Reason != stream.EndDeleted || e.Next != 3 {
			t.Errorf("end %+v", e)
		}
		got, _, _ := w.offsets(t)
		consecutive(t, got, 3)
		if !w.fin {
			t.Error("no FIN: the client would resubscribe")
		}
	})
}

// B05, B10: when all are gone, nothing is left: registry, share, groups, goroutines.
func TestNothingIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, Config{}, stream.Config{Queue: stream.Queue{Entries: 4}})
		var ends []<-chan stream.End
		for i := range 1000 {
			w := newFakeStream(100)
			_, ended := x.run(t, w)
			ends = append(ends, ended)
			if i%3 == 0 {
				w.drop()
			}
			time.AfterFunc(time.Duration(i)*time.Millisecond, func() { w.grant(1 << 30) })
		}
		synctest.Wait()
		for range 20 {
			x.publish(t, 200)
			synctest.Wait()
		}
		for _, c := range ends {
			<-c
		}
		if n := x.shard.Info().Subscriptions; n != 0 {
			t.Errorf("%d subscriptions registered", n)
		}
		if n := x.conn.Subscriptions(); n != 0 {
			t.Errorf("the connection counts %d", n)
		}
		for _, l := range x.lanes {
			if len(l.groups) != 0 || l.subs.Load() != 0 {
				t.Errorf("a lane keeps %d groups, %d subscriptions", len(l.groups), l.subs.Load())
			}
		}
	})
}

func TestLaneAssignment(t *testing.T) {
	lanes := func(cfg Config, conns, each int) map[*lane]int {
		cfg.Lanes = 4
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		used := make(map[*lane]int)
		id := uint64(0)
		for c := range conns {
			k := e.NewConn(uint64(c))
			for range each {
				id++
				used[e.pick(k, id)]++
			}
		}
		return used
	}
	for _, p := range []LanePolicy{SubscriberIDHash, ConnectionIDHash, RoundRobinPin} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			if n := len(lanes(Config{Policy: p}, 1, 100)); n != 1 {
				t.Errorf("a connection's subscriptions are on %d lanes, want 1", n)
			}
			if n := len(lanes(Config{Policy: p}, 100, 1)); n != 4 {
				t.Errorf("100 connections are on %d lanes, want 4", n)
			}
			want := 4
			if p == ConnectionIDHash {
				want = 1
			}
			if n := len(lanes(Config{Policy: p, SpreadConnections: true}, 1, 100)); n != want {
				t.Errorf("spread: a connection's subscriptions are on %d lanes, want %d", n, want)
			}
		})
	}
}

func TestSharesAreEqualAndBounded(t *testing.T) {
	all := &shares{limit: 64 << 20}
	c := &Conn{pages: shares{limit: 1 << 20}, all: all}
	for _, tt := range []struct {
		here, everywhere int64
		want             int
	}{{1, 1, maxPage}, {4, 4, maxPage}, {16, 16, 64 << 10}, {1000, 1000, 32 << 10}, {4, 512, 128 << 10}, {16, 10_000, 32 << 10}} {
		c.pages.subs.Store(tt.here)
		all.subs.Store(tt.everywhere)
		if got := c.pageBytes(32 << 10); got != tt.want {
			t.Errorf("%d of %d subscriptions: %d bytes a page, want %d", tt.here, tt.everywhere, got, tt.want)
		}
	}
}

func TestConfigProblemsAreReportedTogether(t *testing.T) {
	err := (&Config{Lanes: 100, PieceBytes: 1, SlowConsumerTimeout: -1}).Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v, want three problems", err)
	}
}
