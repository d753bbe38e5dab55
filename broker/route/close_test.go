package route

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// The end of a broker: what waits is refused, what is on its way is answered while there
// is time, and then as what it is; nothing more is taken.
func TestClose(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprint("patient ", patient), func(t *testing.T) {
			run(t, nil, func(t *testing.T, c *cluster) {
				book := &book{}
				r := newReplica(t, book)
				r.holds()
				c.leads(shard0, "a", r, 1)
				nowhere := Key{Incarnation: shard0.Incarnation, Shard: 1}
				c.nobody(nowhere, "")
				f := c.nodes["b"].f
				under := newCall(t, "under").publish(f.Place(shard0))
				once := newCall(t, "once").publish(f.Place(shard0), idempotent(1, 0))
				waits := newCall(t, "waits").publish(f.Place(nowhere))
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					if err := f.Close(ctx); err != nil {
						t.Error(err)
					}
				}()
				waits.refused(wire.CodeDraining, wire.RetryNow, "")
				newCall(t, "late").publish(f.Place(shard0)).refused(wire.CodeDraining, wire.RetryNow, "")
				newCall(t, "new").publish(f.Place(Key{Incarnation: "x"})).refused(wire.CodeDraining, wire.RetryNow, "")
				synctest.Wait()
				if !under.pending() || !once.pending() {
					t.Error("answered without an answer")
				}
				if patient {
					r.release(book.append)
					under.ok()
					once.ok()
				} else {
					under.refused(wire.CodeUnacknowledged, wire.RetryOutcomeUnknown, "")
					once.refused(wire.CodeUnacknowledged, wire.RetryOutcomeUnknown, "")
				}
				<-closed
				r.release(book.append)
				if s := f.Stats(); s != (Stats{}) {
					t.Errorf("left: %+v", s)
				}
			})
		})
	}
}

// What is closed or removed while it is being connected to ends as well.
func TestCloseWhileNobodyAnswers(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		c.leads(shard0, "a", newReplica(t, &book{}), 1)
		c.nodes["a"].stop()
		begin := time.Now()
		f := c.nodes["b"].f
		removed := newCall(t, "x").publish(f.Place(shard0))
		time.Sleep(time.Second)
		f.Remove(shard0)
		removed.refused(wire.CodeNotFound, wire.RetryAfter, "")
		away := newCall(t, "y").publish(f.Place(shard0))
		away.refused(wire.CodeShardUnavailable, wire.RetryNow, stream.ReasonOwnerUnavailable)
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
		c.nodes["a"].start()
		newCall(t, "z").publish(f.Place(shard0)).ok()
		if n := c.nodes["a"].dials.Load(); n < 3 || n > 20 {
			t.Errorf("%d attempts to connect", n)
		}
	})
}

// A connection that is not used ends, and another one comes when there is something.
func TestIdleConnectionEnds(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		c.leads(shard0, "a", newReplica(t, &book{}), 1)
		b := c.nodes["b"]
		for i := range 3 {
			newCall(t, "x").publish(b.f.Place(shard0)).ok()
			if s := b.f.Stats(); s.Links != 1 {
				t.Fatalf("%+v", s)
			}
			time.Sleep(2 * time.Minute)
			if s := b.f.Stats(); s.Links != 0 {
				t.Fatalf("%+v", s)
			}
			if n := c.nodes["a"].dials.Load(); n != int64(i+1) {
				t.Errorf("%d connections", n)
			}
		}
	})
}

func TestConfigProblemsAreReportedTogether(t *testing.T) {
	_, err := NewForwarder(Config{HoldTime: -1, ShardBytes: -1})
	if err == nil || len(unwrapAll(err)) != 4 {
		t.Errorf("got %v", err)
	}
	_, err = NewReceiver(ReceiverConfig{Bytes: -1})
	if err == nil || len(unwrapAll(err)) != 2 {
		t.Errorf("got %v", err)
	}
}

func unwrapAll(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return nil
}
