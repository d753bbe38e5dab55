//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/client"
)

// B86: a broker with many connections and subscriptions is killed: all of them are back within a minute, at the others, and traffic
// that was there before goes on meanwhile. They do not all come at the same moment. FELIX_CHAOS_CLIENTS is how many there are (200, with 500
// subscriptions: a small machine has as much to do with the clients as with the brokers).
func TestB86AllComeBackAtOnce(t *testing.T) {
	clients := 200
	if s := os.Getenv("FELIX_CHAOS_CLIENTS"); s != "" {
		var err error
		if clients, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	leader := c.leader(streamQuorum, 0)
	others := c.others(leader)
	// What was there before.
	established := c.dial(others[0])
	p, err := established.NewPublisher(streamOf(streamQuorum), client.PublisherConfig{Idempotent: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var first, last atomic.Int64 // of those that came back, since the kill
	var lost, back atomic.Int64
	var killed atomic.Pointer[time.Time]
	subscriptions := 0
	for i := range clients {
		cl := c.dial(leader)
		for range 2 + i%2 {
			subscriptions++
			sub := c.subscribe(cl, streamQuorum, client.Latest(), func(s *client.SubscribeConfig) {
				s.OnLost = func(error) { lost.Add(1) }
				s.OnResumed = func(client.Resumed) {
					since := int64(time.Since(*killed.Load()))
					first.CompareAndSwap(0, since)
					last.Store(since)
					back.Add(1)
				}
			})
			running.Go(func() {
				for ctx.Err() == nil {
					if _, err := sub.NextBatch(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	now := time.Now()
	killed.Store(&now)
	leader.killMember()
	var waits []time.Duration
	for back.Load() < int64(subscriptions) && time.Since(now) < patience {
		begin := time.Now()
		pending, err := p.Publish(ctx, client.Message{Payload: fmt.Append(nil, len(waits))})
		if err == nil {
			_, err = pending.Wait(ctx)
		}
		if err != nil {
			t.Fatalf("the publisher that was there before: %v", err)
		}
		waits = append(waits, time.Since(begin))
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(waits)
	t.Logf("%d connections, %d subscriptions: %d lost, %d back; the first after %v, the last after %v; publishes meanwhile: median %v, longest %v",
		clients, subscriptions, lost.Load(), back.Load(), time.Duration(first.Load()).Round(time.Millisecond),
		time.Duration(last.Load()).Round(time.Millisecond), waits[len(waits)/2].Round(time.Millisecond), waits[len(waits)-1].Round(time.Millisecond))
	if back.Load() < int64(subscriptions) || time.Duration(last.Load()) > time.Minute {
		t.Errorf("%d of %d are back, the last after %v; want all within a minute", back.Load(), subscriptions, time.Duration(last.Load()))
	}
	if spread := time.Duration(last.Load() - first.Load()); spread < 20*time.Millisecond {
		t.Errorf("all have come within %v", spread)
	}
}
