package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
)

func TestRaceDial(t *testing.T) {
	boom := errors.New("boom")
	refused := &Error{Code: wire.CodeUnauthenticated, Retry: wire.RetryFatal, Message: "no"}
	type broker struct {
		after time.Duration
		err   error
	}
	tests := []struct {
		name      string
		brokers   []broker
		want      string // the address that won
		wantErr   error
		took      time.Duration
		discarded []string
	}{
		{"first answers", []broker{{10 * time.Millisecond, nil}, {0, nil}}, "0", nil, 10 * time.Millisecond, nil},
		{"first fails at once", []broker{{0, boom}, {10 * time.Millisecond, nil}}, "1", nil, 10 * time.Millisecond, nil},
		{"first is silent", []broker{{time.Hour, nil}, {10 * time.Millisecond, nil}}, "1", nil, 1010 * time.Millisecond, nil},
		{"first is slow and wins", []broker{{1005 * time.Millisecond, nil}, {time.Hour, nil}}, "0", nil, 1005 * time.Millisecond, nil},
		{"all fail", []broker{{time.Second, boom}, {0, boom}, {0, boom}}, "", boom, time.Second, nil},
		{"final error", []broker{{0, refused}, {0, nil}}, "", refused, 0, nil},
		{"third", []broker{{time.Hour, nil}, {time.Hour, nil}, {0, nil}}, "2", nil, 2 * time.Second, nil},
		{"loser that cannot be stopped", []broker{{-2 * time.Second, nil}, {10 * time.Millisecond, nil}}, "1", nil, 2 * time.Second, []string{"0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var addrs, discarded []string
				for i := range tt.brokers {
					addrs = append(addrs, fmt.Sprint(i))
				}
				began := time.Now()
				got, err := raceDial(t.Context(), addrs, time.Second, func(ctx context.Context, addr string) (string, error) {
					var i int
					if _, err := fmt.Sscan(addr, &i); err != nil {
						return "", err
					}
					b := tt.brokers[i]
					if b.after < 0 { // deaf to its context
						ctx, b.after = context.WithoutCancel(ctx), -b.after
					}
					select {
					case <-time.After(b.after):
						return addr, b.err
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}, finalDialError, func(addr string) { discarded = append(discarded, addr) })
				if got != tt.want || !errors.Is(err, tt.wantErr) {
					t.Errorf("got %q, error %v; want %q, %v", got, err, tt.want, tt.wantErr)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if diff := cmp.Diff(tt.discarded, discarded); diff != "" {
					t.Errorf("discarded (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRaceDialCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := raceDial(ctx, []string{"a", "b"}, time.Minute, func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, finalDialError, func(int) {})
		is(t, err, context.DeadlineExceeded)
	})
}

func TestAddrBook(t *testing.T) {
	b := newAddrBook([]string{"a:1", "b:1", "a:1"})
	b.learn("c:1")
	b.learn("a:1")
	b.learn("not an address")
	b.demote("a:1")
	if diff := cmp.Diff([]string{"b:1", "c:1", "a:1"}, b.addrs()); diff != "" {
		t.Errorf("after a loss (-want +got):\n%s", diff)
	}
	if got := []bool{b.learned("a:1"), b.learned("c:1"), b.learned("x:1")}; !cmp.Equal(got, []bool{false, true, true}) {
		t.Errorf("learned: got %v", got)
	}
	for i := range 2 * maxLearned {
		b.learn(fmt.Sprintf("h%d:1", i))
	}
	if n := len(b.addrs()); n != 2+maxLearned {
		t.Errorf("the book holds %d addresses, want %d", n, 2+maxLearned)
	}
	if b.find("a:1") < 0 || b.find("b:1") < 0 {
		t.Error("a configured address was dropped")
	}
}

func TestServerName(t *testing.T) {
	tests := []struct {
		configured, addr string
		learned          bool
		want             string
	}{
		{"", "10.0.0.1:5000", false, "localhost"},
		{"", "broker.felix.svc:5000", false, "broker.felix.svc"},
		{"felix", "10.0.0.1:5000", false, "felix"},
		{"felix", "broker.felix.svc:5000", false, "felix"},
		{"felix", "10.0.0.1:5000", true, "felix"},
		{"felix", "broker-1.felix.svc:5000", true, "broker-1.felix.svc"},
		{"", "10.0.0.1:5000", true, "localhost"},
	}
	for _, tt := range tests {
		if got := serverName(tt.configured, tt.addr, tt.learned); got != tt.want {
			t.Errorf("server name of %+v: got %q", tt, got)
		}
	}
}
