package client

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
)

// noStream is an event stream without bytes.
type noStream struct{ cancelled bool }

func (*noStream) Read([]byte) (int, error)            { return 0, io.EOF }
func (s *noStream) CancelRead(quic.StreamErrorCode)   { s.cancelled = true }
func (s *noStream) SetReadDeadline(_ time.Time) error { return nil }

func TestMatcher(t *testing.T) {
	gaveUp := errors.New("gave up")
	tests := []struct {
		name string
		// When the stream comes, when the request waits, and until when each has time. A negative time: never.
		offerAt, offerFor, awaitAt, awaitFor time.Duration
		wantOffer, wantAwait                 bool
	}{
		{"stream first", 0, 10, 5, 10, true, true},
		{"request first", 5, 10, 0, 10, true, true},
		{"same moment", 5, 10, 5, 10, true, true},
		{"stream too late", 20, 10, 0, 10, false, false},
		{"request too late", 0, 10, 20, 10, false, false},
		{"no stream", -1, 0, 0, 10, false, false},
		{"no request", 0, 10, -1, 0, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMatcher()
				e := &eventStream{stream: &noStream{}}
				offered, got := make(chan bool, 1), make(chan *eventStream, 1)
				go func() {
					if tt.offerAt < 0 {
						offered <- false
						return
					}
					time.Sleep(tt.offerAt)
					ctx, cancel := context.WithTimeout(t.Context(), tt.offerFor)
					defer cancel()
					offered <- m.offer(ctx, 7, e)
				}()
				go func() {
					if tt.awaitAt < 0 {
						got <- nil
						return
					}
					time.Sleep(tt.awaitAt)
					ctx, cancel := context.WithTimeoutCause(t.Context(), tt.awaitFor, gaveUp)
					defer cancel()
					s, err := m.await(ctx, 7)
					if s == nil && !errors.Is(err, gaveUp) {
						t.Errorf("await: got error %v, want %v", err, gaveUp)
					}
					got <- s
				}()
				if o := <-offered; o != tt.wantOffer {
					t.Errorf("the stream was wanted: got %v, want %v", o, tt.wantOffer)
				}
				if s := <-got; (s == e) != tt.wantAwait {
					t.Errorf("the request got its stream: got %v, want %v", s == e, tt.wantAwait)
				}
				bothCame := tt.offerAt >= 0 && tt.awaitAt >= 0
				if n := len(m.meetings); bothCame && tt.name != "request too late" && n != 0 {
					t.Errorf("%d meetings are left over", n)
				}
			})
		})
	}
}

// A broker that opens two streams for one subscription must not confuse the client.
func TestMatcherSecondStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMatcher()
		first, second := &eventStream{stream: &noStream{}}, &eventStream{stream: &noStream{}}
		done := make(chan bool)
		go func() { done <- m.offer(t.Context(), 7, first) }()
		synctest.Wait()
		if m.offer(t.Context(), 7, second) {
			t.Error("a second stream was taken")
		}
		if e, err := m.await(t.Context(), 7); e != first {
			t.Errorf("got %v, error %v; want the first stream", e, err)
		}
		if !<-done {
			t.Error("the first stream was not taken")
		}
	})
}
