package route

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// fakeTable is what one broker knows.
type fakeTable struct {
	mu      sync.Mutex
	states  map[Key]State
	changed chan struct{}
}

func newFakeTable() *fakeTable {
	return &fakeTable{states: make(map[Key]State), changed: make(chan struct{})}
}

func (t *fakeTable) Lookup(k Key) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.states[k]
	if !ok {
		return State{Gone: true}
	}
	return s
}

func (t *fakeTable) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

func (t *fakeTable) set(k Key, s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states[k] = s
	close(t.changed)
	t.changed = make(chan struct{})
}

// book is the records of a shard, as a quorum would keep them: whoever leads appends.
type book struct {
	mu       sync.Mutex
	records  []string
	producer map[[2]uint64]uint64 // producer and sequence to offset
}

func (b *book) append(p *stream.Publish) stream.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := [2]uint64{p.Producer, p.Sequence}
	if p.HasProducer {
		if at, ok := b.producer[id]; ok {
			return stream.Result{Offset: at}
		}
	}
	at := uint64(len(b.records))
	for _, r := range p.Records.All() {
		b.records = append(b.records, string(r))
	}
	if p.HasProducer {
		if b.producer == nil {
			b.producer = make(map[[2]uint64]uint64)
		}
		b.producer[id] = at
	}
	return stream.Result{Offset: at}
}

func (b *book) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.records...)
}

// replica is a shard that is here, which does with publishes what the test says.
type replica struct {
	shard *stream.Shard
	book  *book

	mu   sync.Mutex
	do   func(*stream.Publish) // nil: append
	held []*stream.Publish
}

func newReplica(t testing.TB, b *book) *replica {
	t.Helper()
	r := &replica{book: b}
	var err error
	r.shard, err = stream.OpenReplica(stream.Config{Name: stream.Name{Stream: "s"}}, stream.Replicated{Proposer: r, Log: noLog{}})
	if err != nil {
		t.Fatal(err)
	}
	r.shard.Lead()
	return r
}

func (r *replica) Propose(_ *stream.Shard, p *stream.Publish) {
	r.mu.Lock()
	do := r.do
	r.mu.Unlock()
	if do == nil {
		p.Done(r.book.append(p))
		return
	}
	do(p)
}

func (r *replica) does(f func(*stream.Publish)) {
	r.mu.Lock()
	r.do = f
	r.mu.Unlock()
}

// holds keeps what comes.
func (r *replica) holds() {
	r.does(func(p *stream.Publish) {
		r.mu.Lock()
		r.held = append(r.held, p)
		r.mu.Unlock()
	})
}

func (r *replica) refuses(err error) {
	r.does(func(p *stream.Publish) { p.Done(stream.Result{Err: err}) })
}

// release answers what was kept.
func (r *replica) release(answer func(*stream.Publish) stream.Result) {
	r.mu.Lock()
	held := r.held
	r.held = nil
	r.mu.Unlock()
	for _, p := range held {
		p.Done(answer(p))
	}
}

func (r *replica) keeps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

type noLog struct{}

func (noLog) Append([]seglog.Record) error { return nil }
func (noLog) Reader(uint64) stream.Reader  { return nil }
func (noLog) Next() uint64                 { return 0 }
func (noLog) Oldest() uint64               { return 0 }
func (noLog) Stats() (s seglog.Stats)      { return s }
func (noLog) Close() error                 { return nil }

// notLeading is what a replica says that does not lead.
func notLeading() error {
	return &stream.Error{Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: stream.ReasonNotReady, Message: "not leading", Err: stream.ErrNotLeader}
}

// call is one publish, which is to be answered once.
type call struct {
	t    *testing.T
	text string
	done chan stream.Result
	n    atomic.Int64
	at   time.Time
}

func newCall(t *testing.T, text string) *call {
	return &call{t: t, text: text, done: make(chan stream.Result, 1)}
}

func (c *call) publish(p stream.Place, change ...func(*stream.Publish)) *call {
	b := &stream.Publish{Records: wire.RecordsOf([]byte(c.text)), Done: func(r stream.Result) {
		if c.n.Add(1) > 1 {
			c.t.Errorf("%q was answered twice", c.text)
			return
		}
		c.at = time.Now()
		c.done <- r
	}}
	for _, f := range change {
		f(b)
	}
	p.Publish(b)
	return c
}

func idempotent(producer, sequence uint64) func(*stream.Publish) {
	return func(p *stream.Publish) { p.HasProducer, p.Producer, p.Sequence = true, producer, sequence }
}

// wait gives the answer.
func (c *call) wait() stream.Result {
	c.t.Helper()
	select {
	case r := <-c.done:
		return r
	case <-time.After(30 * time.Second):
		c.t.Fatalf("%q was not answered", c.text)
	}
	return stream.Result{}
}

func (c *call) ok() uint64 {
	c.t.Helper()
	r := c.wait()
	if r.Err != nil {
		c.t.Fatalf("%q: %v", c.text, r.Err)
	}
	return r.Offset
}

// refused waits for a refusal.
func (c *call) refused(code wire.Code, retry wire.Retry, reason string) {
	c.t.Helper()
	e, ok := errors.AsType[*stream.Error](c.wait().Err)
	if !ok || e.Code != code || e.Retry != retry || e.Reason != reason {
		c.t.Fatalf("%q: got %+v, want %s, %s, %q", c.text, e, code, retry, reason)
	}
}

func (c *call) pending() bool { return c.n.Load() == 0 }

var shard0 = Key{Incarnation: "0123456789abcdef0123456789abcdef"}
