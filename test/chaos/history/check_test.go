package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var shard = Shard{Stream: "s"}

// good is a history without a fault: two sources, of which the second is told nothing about its second record, one hidden
// record at offset 2, two readers, and the log at the end.
func good() History {
	a1, a2, a3, b1, b2, b3 := ID{1, 1}, ID{1, 2}, ID{1, 3}, ID{2, 1}, ID{2, 2}, ID{2, 3}
	return History{
		Sources: map[uint32]Source{1: {Shard: shard}, 2: {Shard: shard}},
		Publishes: []Publish{
			{ID: a1, Call: 10, Return: 20, Outcome: Acked, Offset: 0},
			{ID: b1, Call: 15, Return: 25, Outcome: Acked, Offset: 1},
			{ID: a2, Call: 30, Return: 40, Outcome: Acked, Offset: 4},
			{ID: b2, Call: 30, Return: Never},                   // it is there
			{ID: b3, Call: 50, Return: 60, Outcome: Refused},    // it is not
			{ID: a3, Call: 50, Return: Never, Outcome: Unknown}, // it is not
		},
		Readers: []Reader{
			{Name: "first", Shard: shard, Deliveries: []Delivery{
				{At: 18, Offset: 0, ID: a1}, {At: 22, Offset: 1, ID: b1}, {At: 36, Offset: 3, ID: b2, Skipped: 1}, {At: 42, Offset: 4, ID: a2},
			}},
			{Name: "late", Shard: shard, Latest: true, Call: 26, Return: 28, Start: 2, Deliveries: []Delivery{
				{At: 37, Offset: 3, ID: b2, Skipped: 1}, {At: 50, Offset: 4, ID: a2},
			}},
		},
		Finals: []Final{{Shard: shard, Via: "n1", End: 5, Records: map[uint64]ID{0: a1, 1: b1, 3: b2, 4: a2}}},
	}
}

func TestCheckGood(t *testing.T) {
	if got := Check(good()); len(got) > 0 {
		t.Errorf("got violations:\n%s", Report(got))
	}
}

// Each of these must be found. That is what the checker is for.
func TestCheckFinds(t *testing.T) {
	tests := []struct {
		name   string
		spoil  func(h *History)
		want   Kind
		linear bool // porcupine has to find it as well
	}{
		{name: "an acked record is not in the log", want: Lost, spoil: func(h *History) { delete(h.Finals[0].Records, 1) }},
		{name: "a delivered record is not in the log", want: Lost, spoil: func(h *History) {
			delete(h.Finals[0].Records, 3)
		}},
		{name: "the log of one broker ends early", want: Lost, spoil: func(h *History) {
			h.Finals = append(h.Finals, Final{Shard: shard, Via: "n2", End: 4, Records: map[uint64]ID{0: {1, 1}, 1: {2, 1}, 3: {2, 2}}})
		}},
		{name: "two brokers, two records at an offset", want: Split, spoil: func(h *History) {
			h.Finals = append(h.Finals, Final{Shard: shard, Via: "n2", End: 5, Records: map[uint64]ID{0: {1, 1}, 1: {2, 1}, 3: {2, 2}, 4: {2, 9}}})
		}},
		{name: "acked at an offset that holds another record", want: Split, spoil: func(h *History) { h.Publishes[2].Offset = 3 }},
		{name: "a reader saw what a deposed leader had", want: Split, spoil: func(h *History) {
			h.Readers[0].Deliveries[3].ID = ID{2, 3}
		}},
		{name: "a record twice", want: Repeated, spoil: func(h *History) {
			h.Finals[0].Records[5] = ID{1, 2}
			h.Finals[0].End = 6
		}},
		{name: "an unknown record twice", want: Repeated, spoil: func(h *History) {
			h.Finals[0].Records[5] = ID{2, 2}
			h.Finals[0].End = 6
		}},
		{name: "a refused record", want: Reappeared, spoil: func(h *History) {
			h.Finals[0].Records[5] = ID{2, 3}
			h.Finals[0].End = 6
		}},
		{name: "a record that nobody has published", want: Foreign, spoil: func(h *History) {
			h.Finals[0].Records[5] = ID{7, 1}
			h.Finals[0].End = 6
		}},
		{name: "a source's records out of order", want: Reordered, spoil: func(h *History) {
			h.Publishes[5].Outcome, h.Publishes[5].Offset, h.Publishes[5].Return = Acked, 2, 70 // a3 in front of a2
			h.Finals[0].Records[2] = ID{1, 3}
		}},
		{name: "published after an ack, and in front of it", want: Reordered, linear: true, spoil: func(h *History) {
			h.Publishes[0].Offset, h.Publishes[1].Offset = 1, 0 // a1 was acked at 20, b1 began at 15
			h.Publishes[1].Call = 21
			h.Readers[0].Deliveries[0] = Delivery{At: 24, Offset: 0, ID: ID{2, 1}}
			h.Readers[0].Deliveries[1] = Delivery{At: 24, Offset: 1, ID: ID{1, 1}}
			h.Finals[0].Records[0], h.Finals[0].Records[1] = ID{2, 1}, ID{1, 1}
		}},
		{name: "B30: latest begins behind what comes", want: Reordered, linear: true, spoil: func(h *History) {
			h.Readers[1].Start, h.Readers[1].Deliveries = 5, nil // a2 was published at 30, the reader was there at 28
		}},
		{name: "B37: latest begins in front of what was acked", want: Reordered, linear: true, spoil: func(h *History) {
			h.Readers[1].Start = 1
			h.Readers[1].Deliveries = slices.Insert(h.Readers[1].Deliveries, 0, Delivery{At: 29, Offset: 1, ID: ID{2, 1}})
		}},
		{name: "delivered before it was published", want: Early, linear: true, spoil: func(h *History) {
			h.Readers[0].Deliveries[2].At, h.Readers[0].Deliveries[3].At = 28, 29
		}},
		{name: "a reader misses a record", want: Hole, spoil: func(h *History) {
			h.Readers[0].Deliveries = slices.Delete(h.Readers[0].Deliveries, 1, 2)
		}},
		{name: "a reader is told of a loss", want: Hole, spoil: func(h *History) {
			h.Readers[0].Deliveries = slices.Delete(h.Readers[0].Deliveries, 1, 2)
			h.Readers[0].Deliveries[1].Gap = 1
		}},
		{name: "a reader gets a record twice", want: Backwards, spoil: func(h *History) {
			h.Readers[0].Deliveries = slices.Insert(h.Readers[0].Deliveries, 1, Delivery{At: 19, Offset: 0, ID: ID{1, 1}})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := good()
			tt.spoil(&h)
			got := Check(h)
			if !has(got, tt.want) {
				t.Errorf("want %q, got:\n%s", tt.want, Report(got))
			}
			if tt.linear && !has(got, NotLinear) {
				t.Errorf("porcupine has not found it, got:\n%s", Report(got))
			}
		})
	}
}

// What is allowed must not be found.
func TestCheckAllows(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(h *History)
	}{
		{"what is unknown is not there", func(h *History) {
			h.Readers[0].Deliveries = slices.Delete(h.Readers[0].Deliveries, 2, 3)
			h.Readers[0].Deliveries[2].Skipped = 2
			h.Readers[1].Deliveries = slices.Delete(h.Readers[1].Deliveries, 0, 1)
			h.Readers[1].Deliveries[0].Skipped = 2
			delete(h.Finals[0].Records, 3)
		}},
		{"a source that may repeat does", func(h *History) {
			h.Sources[2] = Source{Shard: shard, Repeats: true}
			h.Finals[0].Records[5] = ID{2, 1}
			h.Finals[0].End = 6
		}},
		{"a stream that forgets has forgotten", func(h *History) {
			h.Finals[0].Forgets = true
			delete(h.Finals[0].Records, 1)
		}},
		{"retention took the oldest", func(h *History) {
			h.Finals[0].Oldest = 2
			delete(h.Finals[0].Records, 0)
			delete(h.Finals[0].Records, 1)
		}},
		{"a reader that may lose is told", func(h *History) {
			h.Readers[0].Lossy = true
			h.Readers[0].Deliveries = slices.Delete(h.Readers[0].Deliveries, 1, 2)
			h.Readers[0].Deliveries[1].Gap = 1
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := good()
			tt.spoil(&h)
			if got := Check(h); len(got) > 0 {
				t.Errorf("got violations:\n%s", Report(got))
			}
		})
	}
}

func has(list []Violation, k Kind) bool {
	return slices.ContainsFunc(list, func(v Violation) bool { return v.Kind == k })
}

// A log that keeps its promises, with publishers and readers at random, is found to; one acknowledged record taken from it is
// found missing, and so is every swap of two records that were published one after the other.
func TestCheckRandom(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			h := simulate(rng, 3000)
			if got := Check(h); len(got) > 0 {
				t.Fatalf("got violations:\n%s", Report(got))
			}
			var acked []Publish
			for _, p := range h.Publishes {
				if p.Outcome == Acked {
					acked = append(acked, p)
				}
			}
			gone := acked[rng.IntN(len(acked))]
			delete(h.Finals[0].Records, gone.Offset)
			if got := Check(h); len(got) != 1 || got[0].Kind != Lost {
				t.Errorf("without offset %d: got %s", gone.Offset, Report(got))
			}
		})
	}
}

// simulate runs publishers of one record at a time against a log that is right.
func simulate(rng *rand.Rand, steps int) History {
	const sources = 5
	type state struct {
		number  uint64
		under   int // index of the publish under way, -1: none
		applied bool
	}
	h := History{Sources: map[uint32]Source{}}
	log := map[uint64]ID{}
	var end, reader uint64
	var now int64
	h.Readers = []Reader{{Name: "all", Shard: shard}}
	all := make([]state, sources)
	for i := range all {
		all[i].under = -1
		h.Sources[uint32(i+1)] = Source{Shard: shard}
	}
	for range steps {
		now++
		i := rng.IntN(sources)
		s := &all[i]
		switch {
		case s.under < 0:
			s.number++
			s.under, s.applied = len(h.Publishes), false
			h.Publishes = append(h.Publishes, Publish{ID: ID{uint32(i + 1), s.number}, Call: now, Return: Never})
		case !s.applied:
			p := &h.Publishes[s.under]
			switch rng.IntN(10) {
			case 0:
				p.Outcome, p.Return, s.under = Refused, now, -1
			case 1:
				s.under = -1 // not applied, and never answered
			default:
				if rng.IntN(20) == 0 {
					end++ // a hidden record
				}
				log[end], p.Offset, s.applied = p.ID, end, true
				end++
			}
		default:
			p := &h.Publishes[s.under]
			if rng.IntN(10) > 0 {
				p.Outcome, p.Return = Acked, now
			} else {
				p.Offset = 0 // applied, and never answered
			}
			s.under = -1
		}
		if rng.IntN(3) == 0 && reader < end {
			skipped := uint64(0)
			for ; log[reader] == (ID{}); reader++ {
				skipped++
			}
			h.Readers[0].Deliveries = append(h.Readers[0].Deliveries, Delivery{At: now, Offset: reader, ID: log[reader], Skipped: skipped})
			reader++
		}
		if rng.IntN(100) == 0 {
			h.Readers = append(h.Readers, Reader{Name: fmt.Sprint("latest ", now), Shard: shard, Latest: true, Call: now, Return: now, Start: end})
		}
	}
	h.Finals = []Final{{Shard: shard, Via: "n1", End: end, Records: log}}
	return h
}

// Many publishes at the same time, answered all at once or never, are no hard question.
func TestCheckManyAtOnce(t *testing.T) {
	h := History{Sources: map[uint32]Source{}}
	final := Final{Shard: shard, Via: "n1", Records: map[uint64]ID{}}
	const at, rounds = 200, 6
	for i := range uint32(at) {
		h.Sources[i+1] = Source{Shard: shard, Unordered: true}
	}
	for round := range uint64(rounds) {
		for i := range uint32(at) {
			p := Publish{ID: ID{i + 1, round + 1}, Call: int64(round)*10 + 1, Return: int64(round)*10 + 9, Outcome: Acked}
			p.Offset = round*at + uint64(at-1-i)
			if i%3 == 0 {
				p.Return, p.Outcome = Never, Unknown
			}
			final.Records[round*at+uint64(at-1-i)] = p.ID
			h.Publishes = append(h.Publishes, p)
		}
	}
	final.End = at * rounds
	h.Finals = []Final{final}
	if got := Check(h); len(got) > 0 {
		t.Errorf("got violations:\n%s", Report(got))
	}
}
