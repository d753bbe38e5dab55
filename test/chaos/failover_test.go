//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"felix.dev/felix/client"
)

// publishAll publishes records [from, to), which say their numbers, through a client, and wants all of them acknowledged.
func (c *cluster) publishAll(cl *client.Client, stream string, from, to, batch int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	p, err := cl.NewPublisher(streamOf(stream), client.PublisherConfig{Idempotent: true, MaxBatchRecords: batch, Linger: 20 * time.Millisecond})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := from; i < to; i++ {
		if _, err := p.Publish(ctx, client.Message{Payload: fmt.Append(nil, i)}); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		c.t.Fatalf("publish to %s: %v", stream, err)
	}
}

// subscribe makes a subscription that goes on for as long as there is patience.
func (c *cluster) subscribe(cl *client.Client, stream string, from client.Start, change ...func(*client.SubscribeConfig)) *client.Subscription {
	c.t.Helper()
	cfg := client.SubscribeConfig{Start: from, ResumeTimeout: patience}
	for _, f := range change {
		f(&cfg)
	}
	sub, err := cl.Subscribe(c.t.Context(), streamOf(stream), cfg)
	if err != nil {
		c.t.Fatalf("subscribe to %s: %v", stream, err)
	}
	c.t.Cleanup(func() { _ = sub.Close() })
	return sub
}

// expect reads records [from, to), each once and in order.
func (c *cluster) expect(sub *client.Subscription, from, to int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for i := from; i < to; i++ {
		e, err := sub.Next(ctx)
		if err != nil {
			c.t.Fatalf("record %d: %v", i, err)
		}
		if string(e.Payload) != fmt.Sprint(i) || e.Gap > 0 {
			c.t.Fatalf("record %d: got %q at offset %d, gap %d", i, e.Payload, e.Offset, e.Gap)
		}
	}
}

// The leader is killed in the middle of 64 publishes in flight of each publisher, through itself and through others (B63): all
// of idempotent ones are acknowledged, nothing is lost, nothing repeated; others hear of each within 10 s.
func TestB63LeaderKilledInFlight(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	for _, m := range c.members {
		w.follow(streamQuorum, 0, m)
		w.publish(flow{stream: streamQuorum, via: m, how: client.PublisherConfig{Idempotent: true, MaxBatchRecords: 1}, burst: 64}, rng)
	}
	for range 3 {
		c.startAll()
		c.untilInSync()
		w.underWay()
		leader := c.leader(streamQuorum, 0)
		told := make(chan time.Duration, 64)
		plain, err := c.dial(leader).NewPublisher(streamOf(streamQuorum), client.PublisherConfig{MaxBatchRecords: 1})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		source := w.source(streamQuorum)
		for n := range cap(told) {
			u := w.begin(plain, source, uint64(n+1))
			w.publishing.Go(func() {
				r, err := u.pending.Wait(w.ctx)
				told <- time.Since(begin)
				w.settle(u, r, err)
			})
		}
		leader.killMember()
		for range cap(told) {
			if took := <-told; took > 10*time.Second {
				t.Errorf("a publish in flight was told after %v, want at most 10 s", took)
			}
		}
		w.underWay()
	}
	c.startAll()
	w.finish()
}

// TestFailoverTimes kills the leader ten times and shows how long it takes until a publish is acknowledged again. Times are shown,
// not judged: the machine has other things to do.
func TestFailoverTimes(t *testing.T) {
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	var took []time.Duration
	for range 10 {
		c.startAll()
		c.untilInSync()
		leader := c.leader(streamQuorum, 0)
		cl := c.dial(c.others(leader)[0])
		p, err := cl.NewPublisher(streamOf(streamQuorum), client.PublisherConfig{Idempotent: true})
		if err != nil {
			t.Fatal(err)
		}
		publish := func() {
			pending, err := p.Publish(t.Context(), client.Message{Payload: []byte("x")})
			if err == nil {
				_, err = pending.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		publish()
		leader.killMember()
		begin := time.Now()
		publish()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	t.Logf("from the kill to the next acknowledged publish, %d kills: median %v, least %v, most %v",
		len(took), took[len(took)/2].Round(time.Millisecond), took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}

// B24: the new leader has all of the history, not only what it has replicated itself.
func TestB24HistoryFromTheNewLeader(t *testing.T) {
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	c.publishAll(c.dial(c.members[0]), streamQuorum, 0, 100, 10)
	leader := c.leader(streamQuorum, 0)
	leader.killMember()
	for _, m := range c.others(leader) {
		c.expect(c.subscribe(c.dial(m), streamQuorum, client.Earliest()), 0, 100)
	}
}

// B30: a reader from the end that has got nothing yet goes on where it began, over a change of the leader.
func TestB30LatestOverAFailover(t *testing.T) {
	for _, before := range []int{0, 15} {
		t.Run(fmt.Sprintf("%d records before", before), func(t *testing.T) {
			c := newProcesses(t, 3)
			c.create(streamQuorum, "Quorum")
			c.publishAll(c.dial(c.members[0]), streamQuorum, 0, before, 1)
			leader := c.leader(streamQuorum, 0)
			var subs []*client.Subscription
			for _, m := range c.members {
				subs = append(subs, c.subscribe(c.dial(m), streamQuorum, client.Latest()))
			}
			leader.killMember()
			c.publishAll(c.dial(c.others(leader)[0]), streamQuorum, before, before+3, 1)
			for _, sub := range subs {
				if sub.StartOffset() > sub.LiveOffset() {
					t.Errorf("it starts at %d, live is %d", sub.StartOffset(), sub.LiveOffset())
				}
				c.expect(sub, before, before+3)
			}
		})
	}
}

// B37: from the end means from the end, on every broker, while records flow.
func TestB37LatestWhileRecordsFlow(t *testing.T) {
	rng := seeded(t)
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	w := newCrowd(c)
	w.publish(flow{stream: streamQuorum, via: c.members[0], how: client.PublisherConfig{Idempotent: true}, burst: 4}, rng)
	c.until("there is a history", func() bool { return w.rec.AckCount() >= 15 })
	for range 5 {
		for _, m := range c.members {
			r, stop := w.latest(streamQuorum, 0, m)
			c.until("it gets records", func() bool { return r.Count() > 0 || w.ctx.Err() != nil })
			stop()
		}
	}
	w.finish()
}

// B35: kill -9 of all brokers, and a reader that keeps its subscription: it goes on at the next record.
func TestB35ReaderOverAHardRestart(t *testing.T) {
	for _, durability := range []string{"Quorum", "Durable"} {
		t.Run(durability, func(t *testing.T) {
			c := newProcesses(t, 3)
			c.create(streamOwned, durability)
			cl := c.dial(c.members[1])
			c.publishAll(cl, streamOwned, 0, 20, 4)
			lost := make(chan error, 100)
			sub := c.subscribe(cl, streamOwned, client.Earliest(), func(s *client.SubscribeConfig) {
				s.OnLost = func(err error) {
					select {
					case lost <- err:
					default:
					}
				}
			})
			c.expect(sub, 0, 20)
			for _, m := range c.members {
				m.killMember()
			}
			c.startAll()
			c.publishAll(c.dial(c.members[0]), streamOwned, 20, 40, 4)
			c.expect(sub, 20, 40)
			if err := <-lost; err == nil {
				t.Error("it was lost without a reason")
			}
		})
	}
}

// A client that has one address is told, within 10 s, that its broker is gone (B63).
func TestB63OnlyBrokerKilled(t *testing.T) {
	c := newProcesses(t, 3)
	c.create(streamQuorum, "Quorum")
	leader := c.leader(streamQuorum, 0)
	cl := c.dial(leader, only, func(cfg *client.Config) { cfg.PublishTimeout = client.DefaultPublishTimeout })
	c.publishAll(cl, streamQuorum, 0, 1, 1)
	p, err := cl.NewPublisher(streamOf(streamQuorum), client.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	leader.killMember()
	begin := time.Now()
	pending, err := p.Publish(t.Context(), client.Message{Payload: []byte("1")})
	if err == nil {
		_, err = pending.Wait(t.Context())
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("told after %v, want at most 10 s", took)
	}
	// Its address is all that it was given, and it has learned the others: it may have gone there.
	if err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && !errors.Is(err, client.ErrRetryable) {
		t.Errorf("got %v", err)
	}
}
