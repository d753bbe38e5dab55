package route

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// A broker that is no member of a group may know an old leader only. That one says who
// leads now.
func TestOldLeaderNamesTheNext(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		r := newReplica(t, &book{})
		c.leads(shard0, "c", r, 5)
		b := c.nodes["b"]
		b.table.set(shard0, State{Node: "a", Addr: "a.example:5000", Generation: 4})
		p := b.f.Place(shard0)
		begin := time.Now()
		res := newCall(t, "x").publish(p).wait()
		if d := cmp.Diff(stream.Result{Owner: &stream.Owner{NodeID: "c", Addr: "c.example:5000", Generation: 5}}, res); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		newCall(t, "y").publish(p).ok()
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
		if n := c.nodes["a"].dials.Load(); n != 1 {
			t.Errorf("%d connections to the old leader", n)
		}
		if _, e := p.Here(); e == nil || e.NodeID != "c" {
			t.Errorf("subscribers are sent to %+v", e)
		}
		// What the table knows of a later term is the last word.
		b.table.set(shard0, State{Node: "a", Addr: "a.example:5000", Generation: 6})
		c.nodes["a"].table.set(shard0, State{Local: r.shard, Generation: 6})
		c.nodes["c"].table.set(shard0, State{Node: "a", Addr: "a.example:5000", Generation: 6})
		if res := newCall(t, "z").publish(p).wait(); res.Err != nil || res.Owner.NodeID != "a" {
			t.Errorf("got %+v", res)
		}
	})
}

// Brokers that each take the other for the leader do not send a publish to and fro: the
// receiver never sends on, and the sender gives up in time.
func TestNoForwardingLoop(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		c.nodes["a"].table.set(shard0, State{Node: "b", Addr: "b:1", Generation: 1})
		c.nodes["b"].table.set(shard0, State{Node: "a", Addr: "a:1", Generation: 1})
		c.nodes["c"].table.set(shard0, State{Node: "a", Addr: "a:1", Generation: 1})
		begin := time.Now()
		for _, name := range []string{"a", "b", "c"} {
			newCall(t, name).publish(c.nodes[name].f.Place(shard0)).refused(wire.CodeShardUnavailable, wire.RetryNow, "not_ready")
		}
		if took := time.Since(begin); took > 7*time.Second {
			t.Errorf("took %s for three", took)
		}
		if n := c.nodes["a"].dials.Load() + c.nodes["b"].dials.Load(); n != 3 {
			t.Errorf("%d connections for three brokers", n)
		}
	})
}

// B17: what is forwarded for a stream that was deleted never reaches the one that is made
// again under its name: another incarnation is another key.
func TestOtherIncarnation(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		old, again := &book{}, &book{}
		key := Key{Incarnation: "ffffffffffffffffffffffffffffffff"}
		r := newReplica(t, old)
		r.holds()
		c.leads(shard0, "a", r, 1)
		p := c.nodes["b"].f.Place(shard0)
		first := newCall(t, "first").publish(p)
		synctest.Wait()
		// The owner deletes and makes it again before the sender hears of it.
		a, b := c.nodes["a"], c.nodes["b"]
		a.table.set(shard0, State{Gone: true})
		a.table.set(key, State{Local: newReplica(t, again).shard, Generation: 1})
		r.release(func(*stream.Publish) stream.Result {
			return stream.Result{Err: &stream.Error{Code: wire.CodeNotFound, Retry: wire.RetryAfter, Message: "deleted"}}
		})
		second := newCall(t, "second").publish(p)
		first.refused(wire.CodeNotFound, wire.RetryAfter, "")
		second.refused(wire.CodeNotFound, wire.RetryAfter, "")
		// And after it has heard of it: at once.
		b.table.set(shard0, State{Gone: true})
		b.table.set(key, State{Node: "a", Addr: "a:1", Generation: 1})
		begin := time.Now()
		newCall(t, "third").publish(p).refused(wire.CodeNotFound, wire.RetryAfter, "")
		b.f.Remove(shard0)
		newCall(t, "fourth").publish(p).refused(wire.CodeNotFound, wire.RetryAfter, "")
		newCall(t, "new").publish(b.f.Place(key)).ok()
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
		if d := cmp.Diff([]string{"new"}, again.all()); d != "" {
			t.Errorf("records of the new stream (-want +got):\n%s", d)
		}
		if n := len(old.all()); n != 0 {
			t.Errorf("%d records of the old one", n)
		}
	})
}

// B11, B38: a shard that is stuck at its owner has its window and its queue; what goes to
// another shard over the same connection is answered as it is ready.
func TestStuckShardElsewhere(t *testing.T) {
	run(t, func(c *Config) { c.WindowEntries, c.ShardEntries = 16, 32 }, func(t *testing.T, c *cluster) {
		healthy := Key{Incarnation: shard0.Incarnation, Shard: 1}
		stuck := newReplica(t, &book{})
		stuck.holds()
		c.leads(shard0, "a", stuck, 1)
		c.leads(healthy, "a", newReplica(t, &book{}), 1)
		f := c.nodes["b"].f
		begin := time.Now()
		var calls []*call
		for i := range 40 {
			calls = append(calls, newCall(t, fmt.Sprint(i)).publish(f.Place(shard0)))
			newCall(t, fmt.Sprint("healthy", i)).publish(f.Place(healthy)).ok()
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the healthy shard took %s", took)
		}
		if n := stuck.keeps(); n != 16 {
			t.Errorf("%d are with the stuck shard, want a window", n)
		}
		for _, call := range calls[32:] {
			call.refused(wire.CodeOverloaded, wire.RetryAfter, "publish_queue_full")
		}
		// Whoever has it does not say: each is answered in time, as what it is.
		for _, call := range calls[:16] {
			call.refused(wire.CodeUnacknowledged, wire.RetryOutcomeUnknown, "")
		}
		for _, call := range calls[16:32] {
			r := call.wait()
			e, ok := errors.AsType[*stream.Error](r.Err)
			if !ok || (e.Code != wire.CodeShardUnavailable && e.Code != wire.CodeUnacknowledged) {
				t.Errorf("got %+v", r)
			}
		}
		if took := time.Since(begin); took > 10*time.Second { // B63
			t.Errorf("answered after %s", took)
		}
		newCall(t, "still").publish(f.Place(healthy)).ok()
		if n := c.nodes["a"].dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		stuck.release(func(*stream.Publish) stream.Result { return stream.Result{} })
	})
}

// B38: answers find their publishes in whatever order they come.
func TestAnswersInAnyOrder(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		r := newReplica(t, &book{})
		r.holds()
		c.leads(shard0, "a", r, 1)
		var calls []*call
		for i := range 10 {
			calls = append(calls, newCall(t, fmt.Sprint(i)).publish(c.nodes["c"].f.Place(shard0)))
		}
		synctest.Wait()
		r.mu.Lock()
		for i, j := 0, len(r.held)-1; i < j; i, j = i+1, j-1 {
			r.held[i], r.held[j] = r.held[j], r.held[i]
		}
		r.mu.Unlock()
		r.release(func(p *stream.Publish) stream.Result {
			for _, b := range p.Records.All() {
				return stream.Result{Offset: uint64(b[0])}
			}
			return stream.Result{}
		})
		for i, call := range calls {
			if at := call.ok(); at != uint64('0'+i) {
				t.Errorf("publish %d got the answer of %c", i, rune(at))
			}
		}
	})
}

// B39: refusals of every kind reach their publisher as they are, and nobody else.
func TestRefusalsAreCarriedOver(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		r := newReplica(t, &book{})
		c.leads(shard0, "a", r, 1)
		p := c.nodes["b"].f.Place(shard0)
		for _, want := range []error{
			&stream.Error{Code: wire.CodeStorage, Retry: wire.RetryAfter, RetryAfter: time.Second, Message: "disk"},
			&stream.Error{Code: wire.CodeOverloaded, Retry: wire.RetryAfter, Reason: "subscriber_blocking", RetryAfter: 1500 * time.Millisecond, Message: "readers"},
			&stream.Error{Code: wire.CodeStorage, Retry: wire.RetryOutcomeUnknown, Message: "unconfirmed"},
			&stream.Error{Code: wire.CodeQuorumTimeout, Retry: wire.RetryOutcomeUnknown, Message: "no majority"},
			&stream.RefusedError{Reason: stream.SequenceGap, Expected: 17},
			&stream.RefusedError{Reason: stream.SequenceReused, Offset: 99},
			&stream.RefusedError{Reason: stream.SequenceExpired},
			&stream.RefusedError{Reason: stream.UnknownProducer},
		} {
			r.refuses(want)
			bad := newCall(t, "bad").publish(p).wait()
			if d := cmp.Diff(stream.Result{Err: want}, bad); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			r.does(nil)
			newCall(t, "good").publish(p).ok()
		}
	})
}

// Batches of every size arrive as they were, small ones share writes.
func TestSizes(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		b := &book{}
		c.leads(shard0, "a", newReplica(t, b), 1)
		p := c.nodes["b"].f.Place(shard0)
		var want []string
		var calls []*call
		for i, n := range []int{0, 1, 100, copyBelow - 5, copyBelow - 4, copyBelow, writeBytes, 1 << 20, 3 << 20, 7, wire.MaxRecord} {
			want = append(want, strings.Repeat(string(rune('a'+i)), n))
			calls = append(calls, newCall(t, want[i]).publish(p))
		}
		for i, call := range calls {
			if at := call.ok(); at != uint64(i) {
				t.Errorf("%d is at %d", i, at)
			}
		}
		got := b.all()
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("record %d of %d bytes is another", i, len(want[i]))
			}
		}
	})
}

// An owner that takes one publish and answers while its records are still written would
// have the writer read what is somebody else's by then.
func TestEarlyAnswer(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		b := &book{}
		r := newReplica(t, b)
		c.leads(shard0, "a", r, 1)
		c.nodes["a"].r.room.all, c.nodes["a"].r.room.each = 1, 1
		r.holds()
		p := c.nodes["b"].f.Place(shard0)
		first := newCall(t, "first").publish(p)
		synctest.Wait()
		second := newCall(t, strings.Repeat("x", 1<<20)).publish(p) // refused by its head
		second.refused(wire.CodeOverloaded, wire.RetryAfter, "publish_queue_full")
		r.release(b.append)
		first.ok()
		r.does(nil)
		newCall(t, "third").publish(p).ok()
	})
}
