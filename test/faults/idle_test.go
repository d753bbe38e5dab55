package faults_test

import (
	"fmt"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// TestIdleLogsNeverSync is B56: many streams that are synced by interval cost
// no sync while nothing is written to them, however often the interval of another one
// comes round.
func TestIdleLogsNeverSync(t *testing.T) {
	t.Parallel()
	streams := scaled(100, 50) // making one costs a handful of real syncs
	const rounds = 10
	n := startNode(t)
	interval := func(s *admin.StreamSpec) {
		s.Fsync = admin.Fsync{Mode: "Interval", Every: admin.Duration(10 * time.Millisecond)}
	}
	c := n.dial()
	for i := range streams {
		n.create(fmt.Sprint("idle", i), interval)
	}
	for i := range uint64(10) { // some have been written to, in their time
		publish(t, publisher(t, c, streamOf(fmt.Sprint("idle", i))), 1, 0, 1, 100)
	}
	busy := publisher(t, c, n.create("busy", interval))
	synced := func() float64 { return sum(n.metrics(), "felix_log_sync_seconds_count") }
	var before float64
	for i := range uint64(2 * rounds) {
		if i == rounds { // what was written before is synced by now
			before = synced()
		}
		was := synced()
		publish(t, busy, 1, i, 1, 100)
		eventually(t, "the interval has come round", func() bool { return synced() > was })
	}
	if n := synced() - before; n > 2*rounds {
		t.Errorf("%v syncs while one stream was written to %d times", n, rounds)
	}
}

// TestIdleReadersCostNothing is B92: readers with nothing to read are not woken,
// however many polls pass, and get the next event all the same.
func TestIdleReadersCostNothing(t *testing.T) {
	t.Parallel()
	const readers, poll = 50, 20 * time.Millisecond
	n := startNode(t, func(c *broker.Config) { c.Streams.PollInterval = admin.Duration(poll) })
	for _, durability := range []string{"Durable", "Memory"} {
		t.Run(durability, func(t *testing.T) {
			s := n.create(durability, func(s *admin.StreamSpec) { s.Durability = durability })
			c := n.dial()
			p := publisher(t, c, s)
			var all []*reader
			for range readers {
				all = append(all, newReader(subscribe(t, c, s, client.SubscribeConfig{})))
			}
			ctx := bounded(t)
			for i := range uint64(3) {
				publish(t, p, 1, i, 1, 100)
				for _, r := range all {
					if err := r.until(ctx, i+1); err != nil {
						t.Fatal(err)
					}
				}
				eventually(t, "all readers wait", func() bool {
					return sum(n.metrics(), "felix_subscriptions", `state="waiting"`) == sum(n.metrics(), "felix_subscriptions")
				})
				since := time.Now()
				eventually(t, "the poll has seen the last event", func() bool { return time.Since(since) > 2*poll })
				before := n.metrics()
				since = time.Now()
				eventually(t, "many polls have passed", func() bool { return time.Since(since) > 20*poll })
				after := n.metrics()
				for _, work := range []string{"felix_egress_wakeups_total", "felix_egress_writes_total", "felix_egress_log_reads_total"} {
					if d := sum(after, work) - sum(before, work); d != 0 {
						t.Errorf("%s grew by %v while nobody had anything to read", work, d)
					}
				}
			}
		})
	}
}
