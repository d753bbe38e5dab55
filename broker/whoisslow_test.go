package broker_test

import (
	"strconv"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// B04: who is slow? A reader that stalls has a name while it does, in the list and in
// the metrics, and once more in one line of the log when it is ended for it.
func TestWhoIsSlow(t *testing.T) {
	for name, c := range map[string]struct {
		queue  func(*admin.StreamSpec)
		text   string
		reason string
		end    func(n *node, s *client.Subscription)
	}{
		"slow": {
			queue(0, "DropNew"), "took nothing for the slow-consumer timeout", "slow_consumer",
			func(*node, *client.Subscription) {}, // by itself
		},
		"lagged": {
			queue(4, "DropNew"), "passed its lag bound", "lagged",
			func(n *node, s *client.Subscription) { _ = n.readToEnd(s) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, func(c *broker.Config) { c.Egress.SlowConsumerTimeout = admin.Duration(3 * time.Second) })
			n.create("s", c.queue)
			good, bad := n.subscribe(n.dial(), "s", client.Latest()), n.subscribe(n.dial(), "s", client.Latest())
			p := n.dial()
			for range 40 {
				n.publish(p, "s", 1)
				if _, err := good.Next(n.ctx()); err != nil {
					t.Fatal(err)
				}
			}
			var l []admin.Subscription
			eventually(t, "one is blocked and the other has everything", func() bool {
				l = n.readers("s")
				return len(l) == 2 && l[0].State == "blocked" && l[1].State == "waiting"
			})
			slow := l[0]
			// What its window and a piece of 32 KiB take is not lag.
			if slow.LagRecords < 20 || slow.LagRecords >= 40 || slow.LagEntries != slow.LagRecords || slow.LagBytes < slow.LagRecords*4<<10 ||
				slow.NextOffset != 40-slow.LagRecords || slow.Delivered != slow.NextOffset || slow.OnFull != "DropNew" {
				t.Errorf("the slow one is shown as %+v", slow)
			}
			if l[1].LagRecords+l[1].LagEntries+l[1].LagBytes != 0 || l[1].Delivered != 40 {
				t.Errorf("the good one is shown as %+v", l[1])
			}
			now := n.scrape()
			lag := func(id uint64) float64 {
				return now[`felix_subscription_lag_records{stream="dev/default/s",subscription="`+strconv.FormatUint(id, 10)+`"}`]
			}
			if lag(slow.ID) != float64(slow.LagRecords) || lag(l[1].ID) != 0 || now[`felix_subscriptions{state="blocked"}`] != 1 {
				t.Errorf("the metrics name others: %v", now)
			}

			c.end(n, bad)
			eventually(t, "it is over", func() bool { return n.since(`felix_subscriptions_ended_total{reason="`+c.reason+`"}`) == 1 })
			eventually(t, "it is not listed any more", func() bool { return len(n.readers("s")) == 1 })
			warnings := n.log.with("WARN", "subscription")
			lines := n.log.with("WARN subscription ended", c.text, "subscription="+strconv.FormatUint(slow.ID, 10), "stream=dev/default/s",
				"shard=0", "remote="+slow.Remote, "principal=dev/developer", "reason="+c.reason, "offset=", "behind=")
			if len(warnings) != 1 || len(lines) != 1 {
				t.Errorf("the log says %q", warnings)
			}
			if name == "slow" && len(n.log.with("offset="+strconv.FormatUint(slow.NextOffset, 10))) != 1 {
				t.Errorf("it was at %d, the log says %q", slow.NextOffset, warnings)
			}
		})
	}
}

// A reader that catches up with the log is behind, and its lag goes down to nothing.
func TestLagOfAReaderOfHistory(t *testing.T) {
	n := startNode(t)
	n.create("s", queue(0, "CatchUp"))
	p := n.dial()
	n.publish(p, "s", 100)
	s := n.subscribe(n.dial(), "s", client.Earliest())
	eventually(t, "it does not go on by itself", func() bool { return n.stateOf("s") == "blocked" })
	before := n.readers("s")[0]
	// In history nobody has counted batches and bytes.
	if before.LagRecords < 80 || before.LagEntries+before.LagBytes != 0 {
		t.Errorf("lag %d records, %d batches, %d bytes", before.LagRecords, before.LagEntries, before.LagBytes)
	}
	for range 100 {
		if _, err := s.Next(n.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it has everything", func() bool {
		l := n.readers("s")[0]
		return l.State == "waiting" && l.LagRecords+l.LagEntries+l.LagBytes+l.Dropped == 0 && l.Delivered == 100
	})
	// Under CatchUp nothing is bounded, but what there is is counted.
	n.publish(p, "s", 40)
	eventually(t, "it stalls again", func() bool {
		l := n.readers("s")[0]
		return l.LagRecords > 0 && l.LagEntries == l.LagRecords && l.LagBytes > l.LagRecords*4<<10
	})
}
