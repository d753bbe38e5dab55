package server

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// gateStream is an answer stream whose writes the test lets through.
type gateStream struct {
	pass chan error

	mu        sync.Mutex
	writes    int
	got       bytes.Buffer
	closed    bool
	cancelled bool
}

func (g *gateStream) Write(b []byte) (int, error) {
	if err := <-g.pass; err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	return g.got.Write(b)
}

func (g *gateStream) Close() error { g.closed = true; return nil }

func (g *gateStream) CancelWrite(quic.StreamErrorCode) { g.cancelled = true }

func (g *gateStream) SetWriteDeadline(time.Time) error { return nil }

func (g *gateStream) acks(t *testing.T) (ids []uint64) {
	t.Helper()
	b := g.got.Bytes()
	for len(b) > 0 {
		h, err := wire.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		a, err := wire.DecodeAck(h.Flags, b[wire.HeaderLen:wire.HeaderLen+int(h.Length)])
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.RequestID)
		b = b[wire.HeaderLen+int(h.Length):]
	}
	return ids
}

func ok(id uint64) *wire.Ack { return &wire.Ack{OK: true, RequestID: id} }

func TestAnswersAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		out := &gateStream{pass: make(chan error)}
		a := newAnswers(out, 100, time.Minute, &total, nil)
		for i := range 50 {
			a.reserve()
			a.ack(ok(uint64(i))) // never waits, although nothing is written yet
			if i == 0 {
				synctest.Wait() // the first one is being written alone
			}
		}
		if total.Load() != 50 {
			t.Errorf("%d owed", total.Load())
		}
		out.pass <- nil
		out.pass <- nil
		a.finish()
		if out.writes != 2 || len(out.acks(t)) != 50 || !out.closed || total.Load() != 0 {
			t.Errorf("%d writes, %d acks, closed %v, %d owed", out.writes, len(out.acks(t)), out.closed, total.Load())
		}
	})
}

func TestReserveWaitsForUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		out := &gateStream{pass: make(chan error)}
		a := newAnswers(out, 2, time.Minute, &total, nil)
		a.reserve()
		a.reserve()
		third := make(chan struct{})
		go func() { a.await(); a.reserve(); close(third) }()
		synctest.Wait()
		a.ack(ok(1)) // answered, but not taken by QUIC
		synctest.Wait()
		select {
		case <-third:
			t.Fatal("the third did not wait")
		default:
		}
		out.pass <- nil
		<-third
		a.ack(ok(2))
		out.pass <- nil
		synctest.Wait()
		if total.Load() != 1 {
			t.Errorf("%d owed", total.Load())
		}
		a.fail(errors.New("gone"))
		a.finish()
		if !out.cancelled || out.closed || total.Load() != 0 {
			t.Errorf("cancelled %v, closed %v, %d owed", out.cancelled, out.closed, total.Load())
		}
	})
}

func TestFinishWaitsForWhatIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		out := &gateStream{pass: make(chan error)}
		a := newAnswers(out, 2, time.Minute, &total, nil)
		a.reserve()
		done := make(chan struct{})
		go func() { a.finish(); close(done) }()
		synctest.Wait()
		if out.closed {
			t.Fatal("finished with an answer owed")
		}
		a.ack(ok(1)) // the commit
		out.pass <- nil
		<-done
		if !out.closed || len(out.acks(t)) != 1 {
			t.Errorf("closed %v, acks %v", out.closed, out.acks(t))
		}
	})
}

func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		out := &gateStream{pass: make(chan error)}
		a := newAnswers(out, 2, time.Minute, &total, nil)
		a.reserve()
		a.ack(ok(1))
		synctest.Wait()
		sent := make(chan error)
		go func() { sent <- a.send(&wire.OK{}) }()
		synctest.Wait()
		out.pass <- nil // the ack
		out.pass <- nil // the message, from the same goroutine
		if err := <-sent; err != nil {
			t.Error(err)
		}
		go func() { sent <- a.send(&wire.OK{}) }()
		broken := errors.New("stopped")
		out.pass <- broken
		if err := <-sent; !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if err := a.send(&wire.OK{}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		a.await() // nothing is owed any more, nothing waits
		a.reserve()
		a.ack(ok(2))
		a.settle(&wire.PublishOK{})
		a.finish()
		if total.Load() != 0 {
			t.Errorf("%d owed", total.Load())
		}
	})
}

func TestNobodyToAnswer(t *testing.T) {
	var a *answers
	a.await()
	a.reserve()
	a.ack(ok(1))
	a.settle(&wire.PublishOK{})
	a.fail(nil)
	if err := a.send(&wire.OK{}); err != nil {
		t.Error(err)
	}
	a.finish()
}

func TestAckAllocations(t *testing.T) {
	var total atomic.Int64
	a := newAnswers(discardStream{new(bytes.Buffer)}, 1000, time.Minute, &total, nil)
	a.flushing = true // nobody writes
	k := ok(1)
	a.pending = make([]byte, 0, 1<<20)
	if n := testing.AllocsPerRun(100, func() { a.reserve(); a.ack(k) }); n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
