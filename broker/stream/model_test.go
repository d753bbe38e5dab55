package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"felix.dev/felix/broker/seglog"
)

// model is what a shard must have, kept in the simplest way: one entry an offset.
type model struct {
	t       *testing.T
	rng     *rand.Rand
	s       *Shard
	l       *fakeLog // nil: memory
	base    uint64   // of records[0]
	records []string // by offset; hidden: ""
	sent    int      // payloads, which say their number
	readers []*modelReader
	ids     uint64 // of subscriptions
}

func (m *model) hiddenBetween(from, to uint64) bool {
	for o := from; o < to; o++ {
		if m.records[o-m.base] != "" {
			return false
		}
	}
	return true
}

// publish hands in one to four batches, now and then a hidden record, and notes
// what the shard must have taken.
func (m *model) publish() {
	if m.l != nil {
		m.l.fail = nil
		if m.rng.IntN(10) == 0 {
			m.l.fail = seglog.ErrDiskFull
		}
	}
	for range 1 + m.rng.IntN(4) {
		if m.rng.IntN(8) == 0 {
			c := make(chan Result, 1)
			m.s.StartGeneration([]byte("g"), func(r Result) { c <- r })
			m.answer(c, "")
			continue
		}
		var payloads []string
		for range 1 + m.rng.IntN(5) {
			m.sent++
			size := m.rng.IntN(2000)
			if m.rng.IntN(20) == 0 {
				size = m.rng.IntN(60 << 10)
			}
			payloads = append(payloads, fmt.Sprintf("%d %s", m.sent, make([]byte, size)))
		}
		m.answer(publish(m.s, payloads...), payloads...)
	}
}

// answer takes the answers as they come: in the order of the offsets.
func (m *model) answer(c <-chan Result, payloads ...string) {
	if m.l != nil && !m.l.auto {
		m.l.commit()
	}
	r := <-c
	if r.Err != nil {
		if m.l == nil || m.l.fail == nil {
			m.t.Fatalf("publish: %v", r.Err)
		}
		return
	}
	if want := m.base + uint64(len(m.records)); r.Offset != want {
		m.t.Fatalf("publish got offset %d, want %d: dense, and never twice", r.Offset, want)
	}
	m.records = append(m.records, payloads...)
}

// modelReader follows one client through its subscriptions.
type modelReader struct {
	m    *model
	o    SubscribeOptions
	sub  *Subscription
	next uint64 // first offset it has neither got nor been told to be without
}

func (r *modelReader) subscribe() {
	m := r.m
	m.ids++
	sub, err := m.s.Subscribe(from(m.ids, r.o, r.next))
	var cursor *CursorError
	if errors.As(err, &cursor) && cursor.Reason == TooOld && cursor.Available > r.next {
		if m.l == nil && m.hiddenBetween(r.next, cursor.Available) {
			m.t.Fatalf("%v, but nothing is missing", cursor)
		}
		r.next = cursor.Available
		sub, err = m.s.Subscribe(from(m.ids, r.o, r.next))
	}
	if err != nil {
		m.t.Fatalf("subscribe at %d: %v", r.next, err)
	}
	r.sub = sub
}

// step reads one piece, or more than one, or stalls.
func (r *modelReader) step() {
	m := r.m
	for range m.rng.IntN(4) {
		dropped := r.sub.Info().Dropped
		p, st := r.sub.Next(1+m.rng.IntN(8<<10), 1+m.rng.IntN(32<<10))
		if m.rng.IntN(4) == 0 { // as after a direct write that QUIC did not take
			p, st = r.sub.Next(1+m.rng.IntN(8<<10), 1+m.rng.IntN(32<<10))
		}
		jumped := r.sub.Info().Dropped - dropped
		switch st {
		case Idle:
			if jumped == 0 && !m.hiddenBetween(r.next, m.s.Mark()) {
				m.t.Fatalf("reader at %d is idle at mark %d: %+v", r.next, m.s.Mark(), r.sub.Info())
			}
			if jumped > 0 {
				r.next = m.s.Mark()
			}
			return
		case Ended:
			r.over()
			return
		case Ready:
		case Large:
			m.t.Fatalf("a small frame needs %d bytes", r.sub.Need())
		}
		r.check(decode(m.t, p.Bytes), jumped)
		r.next = p.Next
		r.sub.Advance(p)
		if n := r.sub.Info().Next; n != p.Next {
			m.t.Fatalf("next is %d after a piece up to %d", n, p.Next)
		}
	}
}

func (r *modelReader) over() {
	m, e := r.m, r.sub.End()
	switch e.Reason {
	case EndLagged:
		if !r.sub.Lagged() || m.hiddenBetween(e.Next, m.s.Mark()) {
			m.t.Fatalf("ended at mark %d with %+v, telling it: %v", m.s.Mark(), e, r.sub.Lagged())
		}
	case EndTooOld:
		if e.Next >= m.s.Oldest() {
			m.t.Fatalf("too old at %d, the oldest is %d", e.Next, m.s.Oldest())
		}
	default:
		m.t.Fatalf("ended with %+v", e)
	}
	if e.Next < r.next || !m.hiddenBetween(r.next, e.Next) {
		m.t.Fatalf("ended at %d, delivered up to %d", e.Next, r.next)
	}
	r.next = e.Next
	r.sub.Close()
	r.subscribe()
}

// check holds the events of a piece against the model; jumped is how many offsets
// the subscription says to have dropped before it.
func (r *modelReader) check(events []event, jumped uint64) {
	m, next := r.m, r.next
	for i, e := range events {
		if !r.o.Offsets { // told by their payloads
			e.Offset = r.find(next, e.Payload)
		}
		switch {
		case e.Offset < next:
			m.t.Fatalf("offset %d again, %d is next", e.Offset, next)
		case i == 0 && jumped > 0 && (r.sub.Lagged() || e.Offset-next < jumped):
			m.t.Fatalf("offset %d after %d, said to have dropped %d, telling them: %v", e.Offset, next, jumped, r.sub.Lagged())
		case (i > 0 || jumped == 0) && !m.hiddenBetween(next, e.Offset):
			m.t.Fatalf("offset %d after %d: a record is missing", e.Offset, next)
		case m.records[e.Offset-m.base] != e.Payload:
			m.t.Fatalf("offset %d has another payload", e.Offset)
		}
		want := uint64(0)
		if r.o.Skips && r.o.Offsets {
			want = e.Offset - next
		}
		if jumped == 0 && e.Skipped != want {
			m.t.Fatalf("offset %d after %d says %d skipped, want %d", e.Offset, next, e.Skipped, want)
		}
		next = e.Offset + 1
	}
}

func (r *modelReader) find(from uint64, payload string) uint64 {
	for o := from; o < r.m.base+uint64(len(r.m.records)); o++ {
		if r.m.records[o-r.m.base] == payload {
			return o
		}
	}
	r.m.t.Fatalf("a payload that is not at or after %d", from)
	return 0
}

// retain takes old records from the log, as retention does.
func (m *model) retain() {
	if m.l == nil || len(m.l.records) == 0 {
		return
	}
	n := m.rng.IntN(len(m.l.records))
	m.l.mu.Lock()
	m.l.oldest = max(m.l.oldest, m.l.records[n].Base)
	m.l.mu.Unlock()
}

// Whatever publishers, readers, retention and a full disk do: offsets are dense and
// never used twice, every reader gets each record from its start on once and in
// order, hidden offsets are reported exactly, and what is not delivered is told.
func TestShardAgainstAModel(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 20
	}
	first := rand.Uint64()
	for i := range seeds {
		seed := first + uint64(i)
		if !t.Run("", func(t *testing.T) { runModel(t, seed) }) {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runModel(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &model{t: t, rng: rng, base: rng.Uint64N(3)}
	cfg := Config{
		First: m.base, TailBytes: 1 << rng.IntN(18), BatchEvents: 1 + rng.IntN(8),
		Queue: Queue{Entries: 1 + rng.IntN(20), Bytes: 1 << (8 + rng.IntN(12)), OnFull: DropNew},
	}
	if rng.IntN(2) == 0 {
		m.l = &fakeLog{auto: rng.IntN(2) == 0, next: m.base, oldest: m.base}
		if rng.IntN(3) == 0 {
			cfg.Queue.OnFull = CatchUp
		}
	}
	m.s = openShard(t, cfg, m.l)
	for range 4 {
		r := &modelReader{m: m, next: m.base, o: SubscribeOptions{
			Offsets: rng.IntN(4) > 0, Skips: rng.IntN(2) == 0, Lagged: rng.IntN(2) == 0,
		}}
		m.readers = append(m.readers, r)
		r.subscribe()
	}
	defer func() {
		for _, r := range m.readers {
			r.sub.Close()
		}
	}()
	for range 150 {
		switch n := rng.IntN(20); {
		case n < 6:
			m.publish()
		case n == 6 && rng.IntN(3) == 0:
			m.retain()
		case n == 7: // resume somewhere else, also inside a batch
			r := m.readers[rng.IntN(len(m.readers))]
			r.sub.Close()
			r.next = m.base + rng.Uint64N(uint64(len(m.records))+1)
			r.subscribe()
		default:
			m.readers[rng.IntN(len(m.readers))].step()
		}
	}
	for _, r := range m.readers { // everybody comes to the end
		for range 100000 {
			if m.hiddenBetween(r.next, m.s.Mark()) {
				break
			}
			r.step()
		}
		if !m.hiddenBetween(r.next, m.s.Mark()) {
			t.Fatalf("a reader does not come to the end: %+v", r.sub.Info())
		}
	}
}
