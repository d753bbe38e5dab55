package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadback(t *testing.T) {
	p := newPattern(1, testSize)
	for _, c := range []struct {
		name    string
		ids     [][2]uint64
		ordered bool
		expired int64
		want    account
	}{
		{name: "all", ids: append(sequence(2, 0, 3), sequence(3, 0, 2)...), ordered: true, want: account{Expected: 5, Delivered: 5}},
		{
			name: "one is missing", ids: append(sequence(2, 1, 3), sequence(3, 0, 2)...), ordered: true,
			want: account{Expected: 5, Delivered: 4, Unaccounted: 1},
		},
		{
			name: "one is expired", ids: append(sequence(2, 1, 3), sequence(3, 0, 2)...), ordered: true, expired: 1,
			want: account{Expected: 5, Delivered: 4},
		},
		{
			name: "twice", ids: append(sequence(2, 0, 3), [2]uint64{2, 1}, [2]uint64{3, 0}), ordered: true,
			want: account{Expected: 5, Delivered: 4, Repeated: 1, Unaccounted: 1},
		},
		{
			name: "never sent", ids: append(sequence(2, 0, 4), sequence(3, 0, 2)...), ordered: true,
			want: account{Expected: 5, Delivered: 5, Foreign: 1},
		},
		{
			name: "another publisher", ids: append(sequence(2, 0, 3), [2]uint64{1, 0}, [2]uint64{4, 0}), ordered: true,
			want: account{Expected: 5, Delivered: 3, Foreign: 2, Unaccounted: 2},
		},
		{
			name: "out of order", ids: [][2]uint64{{2, 0}, {2, 2}, {2, 1}, {3, 1}, {3, 0}}, ordered: true,
			want: account{Expected: 5, Delivered: 5, Disordered: 2},
		},
		{
			name: "out of order after a refusal", ids: [][2]uint64{{2, 0}, {2, 2}, {2, 1}, {3, 1}, {3, 0}},
			want: account{Expected: 5, Delivered: 5},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newReadback(p, 2, []uint64{3, 2}, c.ordered)
			b.expired = c.expired
			for _, e := range events(p, c.ids...) {
				b.take(e.Payload)
			}
			if diff := cmp.Diff(b.close(), c.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestReadbackSeesDamage(t *testing.T) {
	p := newPattern(1, testSize)
	b := newReadback(p, 0, []uint64{1}, true)
	payload := events(p, [2]uint64{0, 0})[0].Payload
	payload[testSize-1]++
	b.take(payload)
	b.take([]byte("somebody else's"))
	if diff := cmp.Diff(b.close(), account{Expected: 1, Unaccounted: 1, Damaged: 1, Foreign: 1}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestBitset(t *testing.T) {
	for _, n := range []uint64{1, 63, 64, 65, 1000} {
		b := newBitset(n)
		for _, want := range []bool{true, false} {
			for i := range n {
				if got := b.set(i); got != want {
					t.Fatalf("set(%d) of %d = %v, want %v", i, n, got, want)
				}
			}
		}
		if b.has(n) {
			t.Errorf("%d is in a set of the numbers below it", n)
		}
	}
}
