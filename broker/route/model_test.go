package route

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// world is a cluster whose shards change their leaders, whose brokers hear of it when they
// do, and whose connections break, with publishers on every broker.
type world struct {
	t      *testing.T
	c      *cluster
	rand   func(n int) int
	shards []*worldShard
	end    time.Time
	tasks  sync.WaitGroup
}

type worldShard struct {
	key  Key
	book *book

	mu         sync.Mutex
	leader     string
	generation uint64
	replicas   map[string]*replica
}

// propose is what the replica of one broker does: only who leads in truth appends.
func (w *world) propose(s *worldShard, name string, p *stream.Publish) {
	s.mu.Lock()
	leads := s.leader == name
	var r stream.Result
	switch {
	case leads && w.rand(50) == 0: // written, and its fate is not known
		s.book.append(p)
		r.Err = &stream.Error{Code: wire.CodeLeadershipLost, Retry: wire.RetryOutcomeUnknown, Message: "lost", Err: stream.ErrOutcomeUnknown}
	case leads:
		r = s.book.append(p)
	default:
		r.Err = notLeading()
	}
	s.mu.Unlock()
	if !leads || w.rand(4) > 0 {
		p.Done(r)
		return
	}
	w.tasks.Go(func() {
		time.Sleep(time.Duration(w.rand(30)) * time.Millisecond)
		p.Done(r)
	})
}

// elect changes the leader of a shard, and has every broker hear of it some time later.
func (w *world) elect(s *worldShard) {
	s.mu.Lock()
	s.leader = string(rune('a' + w.rand(3)))
	s.generation++
	leader, generation := s.leader, s.generation
	s.mu.Unlock()
	for name, n := range w.c.nodes {
		w.tasks.Go(func() {
			time.Sleep(time.Duration(w.rand(300)) * time.Millisecond)
			if w.rand(2) == 0 {
				n.table.set(s.key, State{Reason: stream.ReasonNotReady, Generation: generation - 1})
				time.Sleep(time.Duration(w.rand(500)) * time.Millisecond)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.generation != generation { // somebody else by now
				return
			}
			if name == leader {
				n.table.set(s.key, State{Local: s.replicas[name].shard, Generation: generation})
			} else {
				n.table.set(s.key, State{Node: leader, Addr: leader + ":1", Generation: generation})
			}
		})
	}
}

func (w *world) disturb() {
	for time.Now().Before(w.end) {
		n := w.c.nodes[string(rune('a'+w.rand(3)))]
		switch w.rand(6) {
		case 0:
			n.cut()
		case 1:
			n.stop()
			time.Sleep(time.Duration(w.rand(400)) * time.Millisecond)
			n.start()
		default:
			w.elect(w.shards[w.rand(len(w.shards))])
		}
		time.Sleep(time.Duration(w.rand(1500)) * time.Millisecond)
	}
}

// publisher publishes to one shard through one broker, some at a time, and holds the
// answers against the book.
func (w *world) publisher(id int, s *worldShard, n *node, once bool) {
	type sent struct {
		text string
		call *call
	}
	var all []sent
	place := n.f.Place(s.key)
	for i := 0; time.Now().Before(w.end); i++ {
		text := fmt.Sprint(id, "-", i)
		c := newCall(w.t, text)
		all = append(all, sent{text, c})
		if once { // one at a time: the book is no judge of sequences
			c.publish(place, idempotent(uint64(id), uint64(i)))
			<-waitOf(c)
		} else {
			c.publish(place)
		}
		time.Sleep(time.Duration(w.rand(20)) * time.Millisecond)
	}
	for _, v := range all {
		<-waitOf(v.call)
	}
	index := make(map[string][]int)
	for i, text := range s.book.all() {
		index[text] = append(index[text], i)
	}
	last, acked := int64(-1), 0
	for _, v := range all {
		r := <-v.call.done
		at := index[v.text]
		e, _ := errors.AsType[*stream.Error](r.Err)
		switch {
		case r.Err == nil && (len(at) != 1 || uint64(at[0]) != r.Offset):
			w.t.Errorf("%q was acknowledged at %d and is at %v", v.text, r.Offset, at)
		case r.Err == nil && int64(at[0]) <= last:
			w.t.Errorf("%q is at %d, behind %d that was sent later", v.text, at[0], last)
		case r.Err == nil:
			last = int64(at[0])
			acked++
		case e == nil:
			w.t.Errorf("%q: %v", v.text, r.Err)
		case e.Retry != wire.RetryOutcomeUnknown && len(at) != 0:
			w.t.Errorf("%q is at %v although nothing was written: %v", v.text, at, r.Err)
		case len(at) > 1:
			w.t.Errorf("%q is at %v", v.text, at)
		}
	}
	if acked == 0 {
		w.t.Errorf("publisher %d: none of %d was acknowledged", id, len(all))
	}
}

// waitOf gives the answer back to who reads it later.
func waitOf(c *call) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		r := <-c.done
		c.done <- r
		close(done)
	}()
	return done
}

// Whatever happens to leaders, to what brokers know and to connections: each publish is
// answered once and truly, none overtakes another, and idempotent ones are there once.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("ROUTE_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("ROUTE_SEED=%d", seed)
	for i := range uint64(3) {
		synctest.Test(t, func(t *testing.T) { runWorld(t, seed+i) })
	}
}

// worldTime is how long a world lasts, on its own clock.
const worldTime = 30 * time.Second

func runWorld(t *testing.T, seed uint64) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, c: newCluster(t, nil, "a", "b", "c"), end: time.Now().Add(worldTime), rand: func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}}
	for i := range uint32(3) {
		s := &worldShard{key: Key{Incarnation: shard0.Incarnation, Shard: i}, book: &book{}, replicas: make(map[string]*replica)}
		for name := range w.c.nodes {
			rep := newReplica(t, s.book)
			rep.does(func(p *stream.Publish) { w.propose(s, name, p) })
			s.replicas[name] = rep
			w.c.nodes[name].table.set(s.key, State{})
		}
		w.shards = append(w.shards, s)
		w.elect(s)
	}
	w.tasks.Go(w.disturb)
	var publishers sync.WaitGroup
	next := 0
	for _, n := range w.c.nodes {
		for _, s := range w.shards {
			for _, once := range []bool{false, true} {
				id := next
				next++
				publishers.Go(func() { w.publisher(id, s, n, once) })
				synctest.Wait()
			}
		}
	}
	publishers.Wait()
	w.tasks.Wait()
	for _, n := range w.c.nodes {
		if st := n.f.Stats(); st.Held != 0 || st.Underway != 0 {
			t.Errorf("%s: left: %+v", n.name, st)
		}
	}
	w.c.close()
}
