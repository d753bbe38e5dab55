package route

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// run runs a test with brokers a, b and c on a clock of its own.
func run(t *testing.T, change func(*Config), test func(*testing.T, *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, change, "a", "b", "c")
		defer c.close()
		test(t, c)
	})
}

// B90, as far as forwarding goes: nothing on the way waits for a tick.
func TestForwardsWithoutDelay(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		b := &book{}
		r := newReplica(t, b)
		c.leads(shard0, "a", r, 3)
		begin := time.Now()
		var want []string
		for i := range 20 {
			for _, name := range []string{"a", "b", "c"} {
				text := fmt.Sprint(name, i)
				want = append(want, text)
				call := newCall(t, text).publish(c.nodes[name].f.Place(shard0))
				res := call.wait()
				if res.Err != nil || res.Offset != uint64(len(want)-1) {
					t.Fatalf("%s: %+v", text, res)
				}
				owner := &stream.Owner{NodeID: "a", Addr: "a.example:5000", Generation: 3}
				if name == "a" {
					owner = nil
				}
				if d := cmp.Diff(owner, res.Owner); d != "" {
					t.Fatalf("%s: owner (-want +got):\n%s", text, d)
				}
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
		if d := cmp.Diff(want, b.all()); d != "" {
			t.Errorf("records (-want +got):\n%s", d)
		}
		if n := c.nodes["a"].dials.Load(); n != 2 {
			t.Errorf("%d connections, want one of each other broker", n)
		}
	})
}

func TestHere(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		r := newReplica(t, &book{})
		p := c.nodes["a"].f.Place(shard0)
		for _, v := range []struct {
			state State
			shard *stream.Shard
			want  *stream.Elsewhere
		}{
			{State{Local: r.shard, Generation: 2}, r.shard, nil},
			{State{Node: "b", Addr: "b:1", Generation: 3}, nil, &stream.Elsewhere{NodeID: "b", Addr: "b:1", Generation: 3}},
			{State{Node: "b", Generation: 3}, nil, &stream.Elsewhere{Generation: 3, Reason: "not_ready"}},
			{State{Reason: stream.ReasonMoving}, nil, &stream.Elsewhere{Reason: "moving"}},
		} {
			c.nodes["a"].table.set(shard0, v.state)
			s, e := p.Here()
			if s != v.shard || !cmp.Equal(v.want, e) || p.Generation() != v.state.Generation {
				t.Errorf("%+v: %p, %+v, %d", v.state, s, e, p.Generation())
			}
		}
		if c.nodes["a"].f.Place(shard0) != p {
			t.Error("another place for the same shard")
		}
	})
}

// What comes while nobody leads waits, goes to whoever leads next, and in the order that
// it came.
func TestHeldDuringAnElection(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		b := &book{}
		c.nobody(shard0, stream.ReasonNotReady)
		var calls []*call
		var want []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
			calls = append(calls, newCall(t, want[i]).publish(c.nodes["b"].f.Place(shard0)))
			time.Sleep(30 * time.Millisecond)
		}
		begin := time.Now()
		c.leads(shard0, "c", newReplica(t, b), 4)
		for i, call := range calls {
			if at := call.ok(); at != uint64(i) {
				t.Errorf("publish %d is at %d", i, at)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s from the election", took)
		}
		if d := cmp.Diff(want, b.all()); d != "" {
			t.Errorf("records (-want +got):\n%s", d)
		}
		if n := c.nodes["b"].f.Stats(); n != (Stats{Links: 1}) {
			t.Errorf("left: %+v", n)
		}
	})
}

func TestHoldIsBounded(t *testing.T) {
	run(t, func(cfg *Config) { cfg.MaxHeld = 10 }, func(t *testing.T, c *cluster) {
		other := Key{Incarnation: shard0.Incarnation, Shard: 1}
		c.nobody(shard0, stream.ReasonOwnerUnavailable)
		c.nobody(other, "")
		begin := time.Now()
		f := c.nodes["a"].f
		var first []*call
		for i := range 5 {
			first = append(first, newCall(t, fmt.Sprint(i)).publish(f.Place(shard0)))
		}
		time.Sleep(time.Second)
		var second []*call
		for i := range 5 {
			second = append(second, newCall(t, fmt.Sprint("other", i)).publish(f.Place(other)))
		}
		for _, k := range []Key{shard0, other} { // one too many
			over := newCall(t, "over").publish(f.Place(k))
			reason := map[Key]string{shard0: "owner_unavailable", other: "not_ready"}[k]
			over.refused(wire.CodeShardUnavailable, wire.RetryNow, reason)
			if !over.at.Equal(begin.Add(time.Second)) {
				t.Errorf("refused after %s", over.at.Sub(begin))
			}
		}
		for _, call := range first {
			call.refused(wire.CodeShardUnavailable, wire.RetryNow, "owner_unavailable")
			if took := call.at.Sub(begin); took != 2*time.Second {
				t.Errorf("held for %s", took)
			}
		}
		for _, call := range second {
			call.refused(wire.CodeShardUnavailable, wire.RetryNow, "not_ready")
			if took := call.at.Sub(begin); took != 3*time.Second {
				t.Errorf("held for %s", took-time.Second)
			}
		}
		if n := f.Stats().Held; n != 0 {
			t.Errorf("%d are held", n)
		}
	})
}

// A leader that leads no more takes nothing; what it was sent goes to the next one, with
// what came behind it, in order.
func TestLeaderThatLeadsNoMore(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		b := &book{}
		old, next := newReplica(t, b), newReplica(t, b)
		for _, from := range []string{"a", "b"} { // here, and elsewhere
			old.refuses(notLeading())
			c.leads(shard0, "a", old, 1)
			var calls []*call
			var want []string
			begin := len(b.all())
			for i := range 20 {
				want = append(want, fmt.Sprint(i))
				calls = append(calls, newCall(t, want[i]).publish(c.nodes[from].f.Place(shard0)))
				time.Sleep(20 * time.Millisecond)
			}
			c.leads(shard0, "c", next, 2)
			for _, call := range calls {
				call.ok()
			}
			if d := cmp.Diff(want, b.all()[begin:]); d != "" {
				t.Errorf("from %s: records (-want +got):\n%s", from, d)
			}
		}
	})
}

// A shard that refuses one publish and takes the next: whatever had been sent by then, the
// first one comes first, or is not written.
func TestNobodyOvertakes(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		for _, from := range []string{"a", "b"} { // here, and elsewhere
			b := &book{}
			r := newReplica(t, b)
			n := 0
			r.does(func(p *stream.Publish) {
				if n++; n%3 == 1 {
					p.Done(stream.Result{Err: notLeading()})
					return
				}
				p.Done(b.append(p))
			})
			c.leads(shard0, "a", r, 1)
			p := c.nodes[from].f.Place(shard0)
			var calls []*call
			var want []string
			for i := range 100 {
				want = append(want, fmt.Sprint(i))
				calls = append(calls, newCall(t, want[i]).publish(p))
			}
			for _, call := range calls {
				call.ok()
			}
			if d := cmp.Diff(want, b.all()); d != "" {
				t.Errorf("from %s: records (-want +got):\n%s", from, d)
			}
			// One that is refused late, when the next one is written already.
			r.holds()
			late := newCall(t, "late").publish(p)
			synctest.Wait()
			r.does(nil)
			newCall(t, "next").publish(p).ok()
			r.release(func(*stream.Publish) stream.Result { return stream.Result{Err: notLeading()} })
			late.refused(wire.CodeShardUnavailable, wire.RetryNow, "not_ready")
		}
	})
}

// The old leader has publishes whose fate it does not know yet: the next one gets none
// before that is settled, so that nothing is overtaken.
func TestWhatIsUnderWayComesFirst(t *testing.T) {
	run(t, nil, func(t *testing.T, c *cluster) {
		b := &book{}
		old, next := newReplica(t, b), newReplica(t, b)
		old.holds()
		c.leads(shard0, "a", old, 1)
		p := c.nodes["b"].f.Place(shard0)
		first := newCall(t, "first").publish(p, idempotent(1, 0))
		synctest.Wait()
		c.leads(shard0, "c", next, 2)
		second := newCall(t, "second").publish(p, idempotent(1, 1))
		synctest.Wait()
		if n := len(b.all()); n != 0 {
			t.Errorf("%d records were written", n)
		}
		old.release(func(*stream.Publish) stream.Result { return stream.Result{Err: notLeading()} })
		first.ok()
		second.ok()
		if d := cmp.Diff([]string{"first", "second"}, b.all()); d != "" {
			t.Errorf("records (-want +got):\n%s", d)
		}
	})
}

// B63, forwarding's part: the connection to the owner is lost, or nothing comes through
// it any more. What it may have written is told as such, or sent again where that is
// harmless; what it did not get goes to the next owner.
func TestOwnerIsLost(t *testing.T) {
	for name, lose := range map[string]func(*node){"killed": (*node).stop, "cut off": (*node).cut} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(t *testing.T, c *cluster) {
				b := &book{}
				old, next := newReplica(t, b), newReplica(t, b)
				old.holds()
				c.leads(shard0, "a", old, 1)
				p := c.nodes["b"].f.Place(shard0)
				plain := newCall(t, "plain").publish(p)
				once := newCall(t, "once").publish(p, idempotent(7, 0))
				synctest.Wait()
				begin := time.Now()
				lose(c.nodes["a"])
				old.release(old.book.append) // written, and nobody hears of it
				c.leads(shard0, "c", next, 2)
				later := newCall(t, "later").publish(p)
				plain.refused(wire.CodeUnacknowledged, wire.RetryOutcomeUnknown, "")
				if at := once.ok(); at != 1 {
					t.Errorf("once is at %d", at)
				}
				if at := later.ok(); at != 2 {
					t.Errorf("later is at %d", at)
				}
				if took := later.at.Sub(begin); took > 4*time.Second {
					t.Errorf("went on after %s", took)
				}
			})
		})
	}
}
