package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

// B14: the position is the first record that was not seen.
func TestPositionIsTheFirstUnseen(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(20)...)
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	next(t, sub, 10)
	if p := sub.Position(); p != 10 {
		t.Fatalf("position after 0..9: got %d, want 10", p)
	}
	for _, from := range []uint64{10, 9} {
		again := subscribe(t, c, demo, SubscribeConfig{Start: At(from)})
		if diff := cmp.Diff(listed(int(from), int(from)+1), next(t, again, 1)); diff != "" {
			t.Errorf("resumed at %d (-want +got):\n%s", from, diff)
		}
	}
}

func TestNextBatch(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	const n = 5000
	b.Store().Append(demoKey, payloads(n)...)
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	ctx := testContext(t)
	var got []string
	for len(got) < n {
		batch, err := sub.NextBatch(ctx)
		if err != nil {
			t.Fatalf("after %d events: %v", len(got), err)
		}
		if len(batch) == 0 || len(batch) > maxBatchEvents {
			t.Fatalf("a batch of %d events", len(batch))
		}
		for _, e := range batch {
			got = append(got, fmt.Sprintf("%d:%s", e.Offset, e.Payload))
		}
		if p := sub.Position(); p != uint64(len(got)) {
			t.Fatalf("position %d after %d events", p, len(got))
		}
		if len(got) < n-1 { // Next and NextBatch may be mixed
			got = append(got, next(t, sub, 1)...)
		}
	}
	if diff := cmp.Diff(listed(0, n), got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The payloads of Next are the caller's; keeping them must not be changed by what comes later.
func TestNextPayloadsAreKept(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(3000)...)
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	var kept []Event
	for range 3000 {
		e, err := sub.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, e)
	}
	for i, e := range kept {
		if string(e.Payload) != fmt.Sprintf("r%d", i) {
			t.Fatalf("event %d has become %q", i, e.Payload)
		}
	}
}

func TestNextHonoursItsContext(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{})
	for i := range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, err := sub.Next(ctx)
		cancel()
		is(t, err, context.DeadlineExceeded)
		_, err = sub.Next(ctx)
		is(t, err, context.DeadlineExceeded)
		// Whatever the last context did must not reach the next one, with and without an end of its own.
		b.Store().Append(demoKey, fmt.Appendf(nil, "r%d", 2*i), fmt.Appendf(nil, "r%d", 2*i+1))
		if diff := cmp.Diff(listed(2*i, 2*i+1), next(t, sub, 1)); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", i, diff)
		}
		if e, err := sub.Next(context.Background()); err != nil || e.Offset != uint64(2*i+1) {
			t.Fatalf("round %d: got %+v, error %v", i, e, err)
		}
	}
}

// Cancelling at any moment must neither lose nor repeat an event.
func TestNextCancelledAtRandom(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{})
	const n = 300
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for i := range n {
			b.Store().Append(demoKey, fmt.Appendf(nil, "r%d", i))
			time.Sleep(100 * time.Microsecond)
		}
	})
	defer publishing.Wait()
	var got []string
	for round := 0; len(got) < n; round++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round%7)*50*time.Microsecond)
		batch, err := sub.NextBatch(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %d events: %v", len(got), err)
		}
		for _, e := range batch {
			got = append(got, fmt.Sprintf("%d:%s", e.Offset, e.Payload))
		}
	}
	if diff := cmp.Diff(listed(0, n), got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCloseWakesNext(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{})
	until(t, "the subscription to be live", func() bool { return len(b.Subs()) == 1 })
	live := b.Subs()[0]
	waiting := make(chan error)
	go func() {
		_, err := sub.Next(context.Background())
		waiting <- err
	}()
	until(t, "Next to run", sub.busy.Load)
	_, err := sub.NextBatch(testContext(t))
	is(t, err, errBusy)
	if err := sub.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	is(t, <-waiting, ErrClosed)
	_, err = sub.Next(testContext(t))
	is(t, err, ErrClosed)
	// The broker is told at once, without waiting for the next record.
	select {
	case <-live.Gone():
	case <-time.After(10 * time.Second):
		t.Error("the broker was not told")
	}
	if n := c.Connections()[0].Subscriptions; n != 0 {
		t.Errorf("%d subscriptions are counted, want 0", n)
	}
}

func TestEndOfSubscription(t *testing.T) {
	tests := []struct {
		name  string
		end   func(s *fakebroker.Sub)
		check func(t *testing.T, err error)
	}{
		{"clean end", func(s *fakebroker.Sub) { s.Finish(nil) }, func(t *testing.T, err error) { is(t, err, io.EOF) }},
		{"lagged", func(s *fakebroker.Sub) {
			s.Finish(&wire.SubscriptionLagged{SubscriptionID: s.ID, ResumeFrom: 3})
		}, func(t *testing.T, err error) {
			if e := as[*LaggedError](t, err); e.ResumeFrom != 3 {
				t.Errorf("resume from %d, want 3", e.ResumeFrom)
			}
		}},
		{"reset", func(s *fakebroker.Sub) { s.Reset() }, func(t *testing.T, err error) {
			if e := as[*LostError](t, err); !e.Resumable {
				t.Errorf("got %+v, want it to be resumable", e)
			}
		}},
		{"cut in a frame", func(s *fakebroker.Sub) {
			s.Write(fakebroker.EventFrame(3, 0, []byte("x"))[:15])
			s.Finish(nil)
		}, func(t *testing.T, err error) {
			is(t, err, io.ErrUnexpectedEOF)
			if e := as[*LostError](t, err); e.Position != 3 {
				t.Errorf("position %d, want 3", e.Position)
			}
		}},
		{"repeat", func(s *fakebroker.Sub) {
			s.Write(fakebroker.EventFrame(2, 0, []byte("x")))
		}, func(t *testing.T, err error) { wantA[*ProtocolError](t, err) }},
		{"nonsense", func(s *fakebroker.Sub) {
			s.Write(make([]byte, 100))
		}, func(t *testing.T, err error) {
			wantA[*ProtocolError](t, err)
			is(t, err, wire.ErrBadMagic)
		}},
		{"moved", func(s *fakebroker.Sub) {
			s.Finish(&wire.ShardMoved{SubscriptionID: s.ID, Addr: "127.0.0.1:9"})
		}, func(t *testing.T, err error) { wantA[*LostError](t, err) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			subscribed := make(chan struct{})
			b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Events: func(s *fakebroker.Sub) bool {
				<-subscribed            // a reset may overtake what was written: the hello
				if tt.name != "reset" { // or the records
					s.DeliverTo(0, 3)
				}
				tt.end(s)
				return true
			}}})
			b.Store().Append(demoKey, payloads(3)...)
			c := dial(t, configFor(b))
			sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest(), NoReconnect: true})
			close(subscribed)
			if tt.name != "reset" {
				// B21, B69: what came before the end is delivered before it.
				if diff := cmp.Diff(listed(0, 3), next(t, sub, 3)); diff != "" {
					t.Errorf("events before the end (-want +got):\n%s", diff)
				}
			}
			_, err := sub.Next(testContext(t))
			tt.check(t, err)
			if _, again := sub.Next(testContext(t)); again != err { //nolint:errorlint // the very same error is meant
				t.Errorf("the next call: got %v, want %v again", again, err)
			}
			if n := c.Connections()[0].Subscriptions; n != 0 {
				t.Errorf("%d subscriptions are counted after the end, want 0", n)
			}
		})
	}
}

func TestGapIsReported(t *testing.T) {
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Events: func(s *fakebroker.Sub) bool {
		s.Write(fakebroker.EventFrame(0, 0, []byte("a")))
		s.Write(fakebroker.EventFrame(5, 1, []byte("b")))
		<-s.Gone()
		return true
	}}})
	c := dial(t, configFor(b))
	var gaps []string
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest(), OnGap: func(from, to uint64) {
		gaps = append(gaps, fmt.Sprintf("%d-%d", from, to))
	}})
	var got []Event
	for range 2 {
		e, err := sub.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []Event{
		{Offset: 0, HasOffset: true, Payload: []byte("a")},
		{Offset: 5, HasOffset: true, Payload: []byte("b"), Skipped: 1, Gap: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1-4"}, gaps); diff != "" {
		t.Errorf("reported gaps (-want +got):\n%s", diff)
	}
}

// B27
func TestBeginAtAHiddenRecord(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	b.Store().Append(demoKey, payloads(10)...)
	b.Store().Hide(demoKey)
	b.Store().Append(demoKey, []byte("x"))
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: At(10)})
	e, err := sub.Next(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Event{Offset: 11, HasOffset: true, Payload: []byte("x"), Skipped: 1}, e); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// B51: a record above every buffer is delivered alone.
func TestLargeRecord(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(i * 7)
	}
	b.Store().Append(demoKey, []byte("small"), large, []byte("small"))
	c := dial(t, configFor(b))
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	for i, want := range [][]byte{[]byte("small"), large, []byte("small")} {
		e, err := sub.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(e.Payload, want) {
			t.Errorf("record %d: got %d bytes, want %d", i, len(e.Payload), len(want))
		}
	}
}
