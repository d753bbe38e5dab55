package egress

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// clients are readers that stall, drop their streams, are removed by an operator or
// too slow, and resume where they were told to, until they have everything.
type clients struct {
	t     *testing.T
	e     *Engine
	s     *stream.Shard
	ids   atomic.Uint64
	total uint64
}

func (x *clients) run(rng *rand.Rand, conn *Conn) {
	for next := uint64(0); next < x.total; {
		sub, err := x.s.Subscribe(stream.SubscribeOptions{
			ID: x.ids.Add(1), Start: wire.StartAt(next), Offsets: true, Skips: true, Lagged: true,
		})
		var cursor *stream.CursorError
		if errors.As(err, &cursor) && cursor.Reason == stream.TooOld {
			next = cursor.Available // only of a memory stream
			continue
		}
		if err != nil {
			x.t.Errorf("subscribe at %d: %v", next, err)
			return
		}
		w := newFakeStream(rng.IntN(3000))
		ended := make(chan stream.End, 1)
		x.e.Start(conn, sub, w, func(e stream.End) { ended <- e })
		next = x.check(next, w, x.drive(rng, sub, w, ended))
	}
}

// drive is what happens on the client's side until the subscription is over.
func (x *clients) drive(rng *rand.Rand, sub *stream.Subscription, w *fakeStream, ended <-chan stream.End) stream.End {
	fate := rng.IntN(60)
	for step := 0; ; step++ {
		select {
		case e := <-ended:
			return e
		default:
		}
		for range rng.IntN(30) {
			runtime.Gosched()
		}
		w.grant(rng.IntN(4000))
		switch {
		case step == fate && fate%3 == 0, sub.Info().Next == x.total:
			w.drop()
			return <-ended
		case step == fate && fate%3 == 1:
			x.s.End(sub.ID())
			return <-ended
		case step == fate: // stalls, for too long if there is something to read
			select {
			case e := <-ended:
				return e
			case <-time.After(25 * time.Millisecond):
			}
		}
	}
}

// check holds what arrived against what was told, and gives the offset to go on at.
func (x *clients) check(start uint64, w *fakeStream, e stream.End) uint64 {
	got, notice, rest := w.offsets(x.t)
	for i, o := range got {
		if o != start+uint64(i) {
			x.t.Errorf("started at %d, record %d has offset %d", start, i, o)
			break
		}
	}
	if e.Next < start || e.Next > start+uint64(len(got)) {
		x.t.Errorf("started at %d, got %d records, told to go on at %d (%v)", start, len(got), e.Next, e.Reason)
	}
	w.mu.Lock()
	fin := w.fin
	w.mu.Unlock()
	if e.Reason == stream.EndLagged && fin && (notice == nil || notice.ResumeFrom != start+uint64(len(got)) || rest > 0) {
		x.t.Errorf("started at %d, got %d records and %d bytes, notice %+v", start, len(got), rest, notice)
	}
	if fin != (notice != nil) {
		x.t.Errorf("fin %v, notice %+v: only a notice ends in FIN here", fin, notice)
	}
	switch e.Reason {
	case stream.EndLagged, stream.EndCancelled, stream.EndRemoved, stream.EndSlow:
	default:
		x.t.Errorf("ended with %+v", e)
	}
	return e.Next
}

// Publishers at full speed, tiny rings, queues and windows, readers that do
// everything that readers do: nobody gets a record twice in a row or misses one, and
// nothing is left behind (B01, B02, B16, B67).
func TestFeedersUnderStress(t *testing.T) {
	first := rand.Uint64()
	for i := range 6 {
		seed := first + uint64(i)
		if !t.Run("", func(t *testing.T) { runStress(t, seed, i) }) {
			t.Fatalf("seed %d, kind %d", seed, i)
		}
	}
}

func runStress(t *testing.T, seed uint64, kind int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	cfg := stream.Config{
		TailBytes: 1 << (12 + rng.IntN(7)), BatchEvents: 1 + rng.IntN(8), PollInterval: time.Hour, // no second chance
		Queue: stream.Queue{Entries: 4 + rng.IntN(30), Bytes: 1 << (12 + rng.IntN(7))}, BlockTimeout: 20 * time.Millisecond, PublishWait: time.Second,
	}
	cfg.Queue.OnFull = []stream.OnFull{stream.DropNew, stream.CatchUp, stream.Block}[kind%3]
	var log *seglog.Log
	var open func(stream.Hooks) (stream.Log, error)
	if kind%2 == 1 || cfg.Queue.OnFull == stream.CatchUp {
		open = func(h stream.Hooks) (stream.Log, error) {
			l, _, err := seglog.Open(seglog.Config{
				Dir: t.TempDir(), SegmentBytes: 32 << 10, Fsync: seglog.FsyncInterval, Committed: h.Committed,
				OnRecover: h.OnRecover, RestoreState: h.RestoreState, SnapshotState: h.SnapshotState,
			})
			log = l
			return stream.Segments(l), err
		}
	}
	s, err := stream.Open(cfg, open)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Lanes: 2, SlowConsumerTimeout: 20 * time.Millisecond, PieceBytes: 4 << 10, SpreadConnections: true})
	if err != nil {
		t.Fatal(err)
	}
	const publishers, each = 3, 50
	x := &clients{t: t, e: e, s: s, total: publishers * each}
	conn := e.NewConn(1)
	var all sync.WaitGroup
	for range publishers {
		rng := rand.New(rand.NewPCG(seed, rng.Uint64()))
		all.Go(func() { publishAll(s, rng, each) })
	}
	for range 12 {
		rng := rand.New(rand.NewPCG(seed, rng.Uint64()))
		all.Go(func() { x.run(rng, conn) })
	}
	all.Wait()
	if err := s.Close(context.Background(), stream.EndShutdown); err != nil {
		t.Error(err)
	}
	e.Close()
	if log != nil {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := s.Info().Subscriptions; n != 0 || conn.Subscriptions() != 0 {
		t.Errorf("%d subscriptions registered, %d on the connection", n, conn.Subscriptions())
	}
}

// publishAll publishes n records, one a publish, each until it is taken.
func publishAll(s *stream.Shard, rng *rand.Rand, n int) {
	done := make(chan stream.Result, 1)
	for range n {
		r := wire.Records{Count: 1, Bytes: wire.AppendRecord(nil, make([]byte, rng.IntN(2000)))}
		for again := true; again; {
			s.Publish(&stream.Publish{Records: r, Done: func(r stream.Result) { done <- r }})
			again = (<-done).Err != nil
		}
		for range rng.IntN(40) {
			runtime.Gosched()
		}
		if rng.IntN(10) == 0 {
			time.Sleep(2 * directGap) // so that some are lone ones
		}
	}
}
