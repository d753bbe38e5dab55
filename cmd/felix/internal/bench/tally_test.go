package bench

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/client"
)

const testSize = 40

// events makes the events of records, each written as publisher and sequence.
func events(p *pattern, ids ...[2]uint64) []client.Event {
	var es []client.Event
	for _, id := range ids {
		b := make([]byte, p.size)
		p.write(b, record{publisher: uint16(id[0]), seq: id[1]})
		es = append(es, client.Event{Payload: b})
	}
	return es
}

// sequence is publisher's records from to until.
func sequence(publisher, from, until uint64) (ids [][2]uint64) {
	for i := from; i < until; i++ {
		ids = append(ids, [2]uint64{publisher, i})
	}
	return ids
}

func TestTally(t *testing.T) {
	p := newPattern(1, testSize)
	const first = 4 // the stream's publishers are 4 and 5
	ten := events(p, sequence(4, 0, 10)...)
	with := func(es []client.Event, f func([]client.Event)) []client.Event {
		es = append([]client.Event(nil), es...)
		f(es)
		return es
	}
	for _, c := range []struct {
		name   string
		events []client.Event
		end    error
		counts []uint64
		want   account
		bad    string
	}{
		{name: "all", events: ten, counts: []uint64{10, 0}, want: account{Expected: 10, Delivered: 10}},
		{
			name:   "two publishers",
			events: events(p, [2]uint64{4, 0}, [2]uint64{5, 0}, [2]uint64{5, 1}, [2]uint64{4, 1}),
			counts: []uint64{2, 2},
			want:   account{Expected: 4, Delivered: 4},
		},
		{
			name: "the end is missing", events: ten[:8], counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 8, Unaccounted: 2}, bad: "2 of 10 expected records are unaccounted for",
		},
		{
			name: "a hole", events: append(events(p, sequence(4, 0, 3)...), ten[5:]...), counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 8, Unaccounted: 2}, bad: "unaccounted",
		},
		{
			name: "a hole that is reported", counts: []uint64{10, 0},
			events: with(append(events(p, sequence(4, 0, 3)...), ten[5:]...), func(es []client.Event) { es[3].Gap = 2 }),
			want:   account{Expected: 10, Delivered: 8, Dropped: 2},
		},
		{
			name: "a gap that is none", counts: []uint64{10, 0},
			events: with(ten, func(es []client.Event) { es[3].Gap = 2 }),
			want:   account{Expected: 10, Delivered: 10, Dropped: 2, Unaccounted: -2}, bad: "unaccounted",
		},
		{
			name: "twice", events: append(events(p, sequence(4, 0, 10)...), ten[9]), counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 10, Repeated: 1}, bad: "1 of 10 expected records came twice",
		},
		{
			name: "late", events: append(append(events(p, sequence(4, 0, 5)...), ten[6:]...), ten[5]), counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 9, Unaccounted: 1, Disordered: 1}, bad: "out of order",
		},
		{
			name: "damaged", counts: []uint64{10, 0},
			events: with(ten, func(es []client.Event) {
				b := append([]byte(nil), es[9].Payload...)
				b[testSize-1]++
				es[9].Payload = b
			}),
			want: account{Expected: 10, Delivered: 9, Unaccounted: 1, Damaged: 1}, bad: "damaged",
		},
		{
			name: "another stream's", events: append(events(p, sequence(4, 0, 10)...), events(p, [2]uint64{3, 0}, [2]uint64{6, 0})...), counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 10, Foreign: 2}, bad: "not of this run",
		},
		{
			name: "another run's", events: append(events(p, sequence(4, 0, 10)...), events(newPattern(2, testSize), [2]uint64{4, 0})...), counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 10, Foreign: 1}, bad: "not of this run",
		},
		{
			name: "lagged", events: ten[:6], end: &client.LaggedError{ResumeFrom: 106}, counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 6, Dropped: 4, Lagged: 1},
		},
		{
			name: "lagged, the notice repeats a record", events: ten[:6], end: &client.LaggedError{ResumeFrom: 105}, counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 6, Dropped: 4, Lagged: 1},
		},
		{
			name: "lagged, the notice loses a record", events: ten[:6], end: &client.LaggedError{ResumeFrom: 107}, counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 6, Dropped: 3, Lagged: 1, Unaccounted: 1}, bad: "unaccounted",
		},
		{
			name: "lagged beyond a gap and a hidden offset", counts: []uint64{10, 0}, end: &client.LaggedError{ResumeFrom: 109},
			events: with(append(events(p, sequence(4, 0, 3)...), ten[5:8]...), func(es []client.Event) { es[3].Gap, es[3].Skipped = 2, 1 }),
			want:   account{Expected: 10, Delivered: 6, Dropped: 4, Lagged: 1},
		},
		{
			name: "lost, and it can be resumed", events: ten[:6], end: &client.LostError{Position: 106, Resumable: true}, counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 6, Dropped: 4, Lost: 1},
		},
		{
			name: "lost without a position", events: ten[:6], end: &client.LostError{}, counts: []uint64{10, 0},
			want: account{Expected: 10, Delivered: 6, Lost: 1, Unaccounted: 4}, bad: "unaccounted",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tally := newTally(p, first, 2)
			tally.start, tally.startKnown = 100, true
			// In two batches, as they may come.
			tally.take(c.events[:len(c.events)/2])
			tally.take(c.events[len(c.events)/2:])
			if c.end != nil {
				if err := tally.end(c.end); err != nil || !tally.gone.Load() {
					t.Errorf("end: %v, gone %v", err, tally.gone.Load())
				}
			}
			got := tally.close(c.counts)
			if diff := cmp.Diff(got, c.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if err := got.dropped(); (err != nil) != (c.want.Dropped != 0) {
				t.Errorf("dropped: %v", err)
			}
			switch err := got.err(); {
			case (err != nil) != (c.bad != ""):
				t.Errorf("error %v", err)
			case err != nil && !strings.Contains(err.Error(), c.bad):
				t.Errorf("error %v, want %q", err, c.bad)
			}
		})
	}
}

func TestTallyEndsWithTheUnexpected(t *testing.T) {
	tally := newTally(newPattern(1, testSize), 0, 1)
	boom := errors.New("boom")
	if err := tally.end(boom); !errors.Is(err, boom) || !tally.gone.Load() {
		t.Errorf("end = %v, gone %v", err, tally.gone.Load())
	}
}

func TestTallyRecordsStamps(t *testing.T) {
	p := newPattern(1, testSize)
	tally := newTally(p, 0, 1)
	tally.latency = newRecorder(time.Now(), 0)
	tally.latency.from.Store(0)
	es := events(p, sequence(0, 0, 3)...)
	p.write(es[1].Payload, record{seq: 1, stamp: stamp{due: 1}})
	tally.take(es)
	if due, _ := tally.latency.summary(); due.Count != 1 {
		t.Errorf("%d of 1 stamped records were timed", due.Count)
	}
}

func TestAccountAdds(t *testing.T) {
	one := account{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	sum := one
	sum.add(one)
	if diff := cmp.Diff(sum, account{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// TestTakeAllocates: what every delivery costs is no memory.
func TestTakeAllocates(t *testing.T) {
	p := newPattern(1, testSize)
	es := events(p, sequence(0, 0, 64)...)
	tally := newTally(p, 0, 1)
	tally.latency = newRecorder(time.Now(), 0)
	if n := testing.AllocsPerRun(10, func() { tally.take(es) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, size := range []int{256, 4096, 65536} {
		b.Run(short(float64(size)), func(b *testing.B) {
			p := newPattern(1, size)
			es := events(p, sequence(0, 0, 16)...)
			b.SetBytes(int64(size * len(es)))
			b.ReportAllocs()
			tally := newTally(p, 0, 1)
			for b.Loop() {
				tally.next[0] = 0
				tally.take(es)
			}
		})
	}
}
