package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// sink is a proposer that keeps what it is given until the test applies it.
type sink struct{ got []*Publish }

func (k *sink) Propose(_ *Shard, p *Publish) { k.got = append(k.got, p) }

func newReplicaLog(next uint64) *fakeLog {
	return &fakeLog{auto: true, first: next, next: next, oldest: next, hooks: Hooks{Committed: func(uint64, error) {}}}
}

func openReplica(t *testing.T, cfg Config, l *fakeLog, st ReplicaState, p Proposer) *Shard {
	t.Helper()
	cfg.Name = Name{"t1", "default", "s"}
	if p == nil {
		p = &sink{}
	}
	s, err := OpenReplica(cfg, Replicated{Proposer: p, Log: l, State: st})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeShard(t, s, EndShutdown) })
	return s
}

// apply applies batches and wants no error.
func apply(t *testing.T, s *Shard, term uint64, batches ...Batch) []Result {
	t.Helper()
	results := make([]Result, len(batches))
	if err := s.Apply(term, int64(term)*1000, batches, results); err != nil {
		t.Fatal(err)
	}
	return results
}

func batch(payloads ...string) Batch { return Batch{Records: records(payloads...)} }

func produced(id, sequence uint64, payloads ...string) Batch {
	return Batch{Records: records(payloads...), HasProducer: true, Producer: id, Sequence: sequence}
}

// history reads everything through a subscription.
func history(t *testing.T, s *Shard, from wire.Start) []event {
	t.Helper()
	sub, err := s.Subscribe(SubscribeOptions{ID: rand.Uint64(), Start: from, Offsets: true, Skips: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	got, st := drain(t, sub)
	if st != Idle {
		t.Fatalf("reading ended with %v %+v", st, sub.End())
	}
	return got
}

type entryOf struct {
	term    uint64
	batches []Batch
}

func randomEntries(rng *rand.Rand, n int) (out []entryOf) {
	term := uint64(1)
	for i := range n {
		if rng.IntN(10) == 0 {
			term += uint64(1 + rng.IntN(3))
		}
		e := entryOf{term: term}
		for j := range 1 + rng.IntN(6) {
			b := batch()
			for k := range 1 + rng.IntN(5) {
				b.Records.Bytes = wire.AppendRecord(b.Records.Bytes, fmt.Appendf(nil, "%d.%d.%d", i, j, k))
				b.Records.Count++
			}
			if rng.IntN(3) == 0 { // right, repeated, wrong and unknown ones alike
				b.HasProducer, b.Producer, b.Sequence = true, uint64(rng.IntN(3)), uint64(rng.IntN(8))
			}
			e.batches = append(e.batches, b)
		}
		out = append(out, e)
	}
	return out
}

// Two replicas that apply the same end the same, also when one of them begins again
// from an older state over a log that is further, merges other batches into its
// records, and leads meanwhile (B33).
func TestReplicasEndIdentical(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		entries := randomEntries(rng, 40)
		first := uint64(rng.IntN(100))
		st := ReplicaState{First: first, Next: first, Oldest: first}
		a := openReplica(t, Config{}, newReplicaLog(first), st, nil)
		log := newReplicaLog(first)
		b := openReplica(t, Config{}, log, st, nil)
		at, saved := rng.IntN(len(entries)), st
		crash := at + rng.IntN(len(entries)-at)
		var answers []string
		for i, e := range entries {
			if i == at {
				saved = b.State()
			}
			if i == crash {
				// Of the last record that was written a part may be all that there is.
				if n := len(log.records); n > 0 && log.next > saved.Next && rng.IntN(2) == 0 {
					cutLast(t, log, saved.Next)
				}
				b = openReplica(t, Config{BatchEvents: 1 + rng.IntN(20)}, log, saved, nil)
				if rng.IntN(2) == 0 {
					b.Lead()
				}
				for _, e := range entries[at:i] {
					apply(t, b, e.term, e.batches...)
				}
			}
			ra, rb := apply(t, a, e.term, e.batches...), apply(t, b, e.term, e.batches...)
			for j := range ra {
				if fmt.Sprint(ra[j]) != fmt.Sprint(rb[j]) {
					t.Fatalf("entry %d batch %d: one replica says %v, the other %v", i, j, ra[j], rb[j])
				}
				answers = append(answers, fmt.Sprint(ra[j]))
			}
		}
		if d := cmp.Diff(a.State(), b.State()); d != "" {
			t.Fatalf("states differ (-a +b):\n%s", d)
		}
		a.Lead()
		b.Lead()
		if d := cmp.Diff(history(t, a, at0(first)), history(t, b, at0(first))); d != "" {
			t.Fatalf("records differ (-a +b):\n%s\nanswers %v", d, answers)
		}
	}
}

func at0(first uint64) wire.Start { return at(first) }

// cutLast takes the end of the last record of a log away, down to an offset at least.
func cutLast(t *testing.T, l *fakeLog, least uint64) {
	t.Helper()
	n := len(l.records) - 1
	r := &l.records[n]
	if r.Base < least || r.Count < 2 {
		return
	}
	info, err := wire.DecodeEvents(wireFlags(t, r.Frame), r.Frame[wire.HeaderLen:])
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for i, p := range info.Records.All() {
		if i < int(r.Count)-1 {
			kept = append(kept, string(p))
		}
	}
	part := records(kept...)
	r.Frame = append(wire.BeginOffsetFrame(nil, r.Base, part.Count, len(part.Bytes)), part.Bytes...)
	r.Count--
	l.next--
}

func wireFlags(t *testing.T, frame []byte) wire.Flags {
	t.Helper()
	h, err := wire.ParseHeader(frame)
	if err != nil {
		t.Fatal(err)
	}
	return h.Flags
}

// The first record of a term is hidden: it takes an offset, a reader that begins at it
// gets what follows, and the skip is told (B27).
func TestGenerationStartOfATerm(t *testing.T) {
	s := openReplica(t, Config{}, newReplicaLog(0), ReplicaState{}, nil)
	s.Lead()
	if got := apply(t, s, 3, batch("a"), batch("b", "c")); got[0].Offset != 0 || got[1].Offset != 1 {
		t.Fatalf("an empty shard begins with a hidden record: %v", got)
	}
	if got := apply(t, s, 5, produced(1, 9, "no")); got[0].Err == nil || s.Mark() != 3 {
		t.Fatalf("a refused batch began a term: %v, mark %d", got, s.Mark())
	}
	if got := apply(t, s, 5, batch("d"), batch("e")); got[0].Offset != 4 || got[1].Offset != 5 {
		t.Fatalf("the first of a term is at %v, want 4 and 5", got)
	}
	want := []event{{Offset: 4, Payload: "d", Skipped: 1}, {Offset: 5, Payload: "e"}}
	if d := cmp.Diff(want, history(t, s, at(3))); d != "" {
		t.Errorf("from the hidden record (-want +got):\n%s", d)
	}
	all := []event{{Payload: "a"}, {Offset: 1, Payload: "b"}, {Offset: 2, Payload: "c"}, {Offset: 4, Payload: "d", Skipped: 1}, {Offset: 5, Payload: "e"}}
	if d := cmp.Diff(all, history(t, s, earliest)); d != "" {
		t.Errorf("from the beginning (-want +got):\n%s", d)
	}
}

// A log that refuses an entry leaves nothing behind, and the same entry is applied later (B82).
func TestApplyIsRefusedAndRepeated(t *testing.T) {
	for _, leads := range []bool{true, false} {
		log := newReplicaLog(0)
		s := openReplica(t, Config{}, log, ReplicaState{}, nil)
		if leads {
			s.Lead()
		}
		apply(t, s, 1, produced(7, 0, "a"))
		before := s.State()
		log.fail = seglog.ErrDiskFull
		results := make([]Result, 2)
		again := []Batch{produced(7, 1, "b"), batch("c")}
		if err := s.Apply(2, 0, again, results); !errors.Is(err, seglog.ErrDiskFull) {
			t.Fatalf("Apply on a full disk: %v", err)
		}
		if d := cmp.Diff(before, s.State()); d != "" {
			t.Fatalf("a refused entry left something (-before +after):\n%s", d)
		}
		log.fail = nil
		if got := apply(t, s, 2, again...); got[0].Offset != 2 || got[1].Offset != 3 {
			t.Fatalf("then it is at %v, want 2 and 3", got)
		}
		s.Lead()
		want := []event{{Payload: "a"}, {Offset: 2, Payload: "b", Skipped: 1}, {Offset: 3, Payload: "c"}}
		if d := cmp.Diff(want, history(t, s, earliest)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// Nobody sees a record before the replicas have agreed on it, and a reader gets records
// in the order of their offsets (B91).
func TestNothingIsSeenBeforeItIsAgreedOn(t *testing.T) {
	k := &sink{}
	s := openReplica(t, Config{}, newReplicaLog(0), ReplicaState{}, k)
	s.Lead()
	sub := subscribe(t, s, SubscribeOptions{ID: 1, Start: latest, Offsets: true})
	one, two := publish(s, "one"), publish(s, "two")
	if got, st := drain(t, sub); len(got) != 0 || st != Idle || s.Mark() != 0 {
		t.Fatalf("a reader sees %v of what is only proposed", got)
	}
	if len(k.got) != 2 {
		t.Fatalf("%d publishes were proposed, want 2", len(k.got))
	}
	// They are agreed on in the other order.
	apply(t, s, 1, Batch{Records: k.got[1].Records}, Batch{Records: k.got[0].Records})
	want := []event{{Payload: "two"}, {Offset: 1, Payload: "one"}}
	got, _ := drain(t, sub)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	k.got[0].Done(Result{Offset: 1})
	k.got[1].Done(Result{Offset: 0})
	if a, b := <-one, <-two; a.Offset != 1 || b.Offset != 0 {
		t.Errorf("answers %v %v", a, b)
	}
}

// A sealed shard refuses, and its readers get the rest and the end.
func TestSealedReplica(t *testing.T) {
	log := newReplicaLog(0)
	s := openReplica(t, Config{}, log, ReplicaState{}, nil)
	s.Lead()
	sub := subscribe(t, s, SubscribeOptions{ID: 1, Start: earliest, Offsets: true})
	apply(t, s, 1, batch("a", "b"))
	if end := s.Seal(); end != 2 {
		t.Errorf("sealed at %d, want 2", end)
	}
	if got := apply(t, s, 2, batch("late")); !errors.Is(got[0].Err, ErrClosed) || s.Mark() != 2 {
		t.Errorf("a sealed shard answers %v, mark %d", got, s.Mark())
	}
	got, st := drain(t, sub)
	if len(got) != 2 || st != Ended || sub.End().Reason != EndDeleted {
		t.Errorf("its reader got %v and %v %+v", got, st, sub.End())
	}
	back := openReplica(t, Config{}, log, s.State(), nil)
	back.Lead()
	if _, err := back.Subscribe(SubscribeOptions{ID: 2, Start: earliest}); !errors.Is(err, ErrClosed) {
		t.Errorf("a sealed shard that was opened again takes a reader: %v", err)
	}
}

// Under Block publishers of a replicated shard wait for a reader's room as others do,
// what is under way to the replicas included.
func TestReplicaBlocks(t *testing.T) {
	got := make(chan *Publish, 64)
	s := openReplica(t, Config{Queue: Queue{Entries: 2, OnFull: Block}}, newReplicaLog(0), ReplicaState{},
		proposerFunc(func(_ *Shard, p *Publish) { got <- p }))
	s.Lead()
	sub := subscribe(t, s, SubscribeOptions{ID: 1, Start: latest, Offsets: true})
	var answers []<-chan Result
	for i := range 4 {
		answers = append(answers, publish(s, fmt.Sprint(i)))
	}
	give := func(p *Publish) { p.Done(apply(t, s, 1, Batch{Records: p.Records})[0]) }
	a, b := <-got, <-got
	select {
	case <-got:
		t.Fatal("a third publish was proposed while two are unread")
	case <-time.After(50 * time.Millisecond):
	}
	give(a)
	give(b)
	select {
	case <-got:
		t.Fatal("a third publish was proposed while two are unread")
	case <-time.After(50 * time.Millisecond):
	}
	if read, _ := drain(t, sub); len(read) != 2 {
		t.Fatalf("the reader got %v", read)
	}
	give(<-got)
	give(<-got)
	for i, c := range answers {
		if r := <-c; r.Err != nil || r.Offset != uint64(i) {
			t.Errorf("publish %d: %v", i, r)
		}
	}
}

type proposerFunc func(*Shard, *Publish)

func (f proposerFunc) Propose(s *Shard, p *Publish) { f(s, p) }

// Settings change under a shard that goes on.
func TestConfigureReplica(t *testing.T) {
	s := openReplica(t, Config{Queue: Queue{Entries: 10}}, newReplicaLog(0), ReplicaState{}, nil)
	s.Lead()
	if err := s.Configure(Queue{Entries: 1 << 30}, 0); err == nil {
		t.Error("impossible bounds were taken")
	}
	if err := s.Configure(Queue{Entries: 1, OnFull: CatchUp}, 512<<10); err != nil {
		t.Fatal(err)
	}
	sub := subscribe(t, s, SubscribeOptions{ID: 1, Start: latest, Offsets: true})
	if sub.queue.OnFull != CatchUp || sub.queue.Entries != 1 {
		t.Errorf("a reader has %+v", sub.queue)
	}
	big := string(make([]byte, 20<<10))
	for range 200 {
		apply(t, s, 1, batch(big))
	}
	if n := s.Info().TailBytes; n > 1<<20 {
		t.Errorf("the ring holds %d bytes, of 512 KiB", n)
	}
}
