package metrics

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorstAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for limit := range 6 {
		var all []SubscriptionState
		w := worst{max: limit}
		for id := range uint64(200) {
			s := SubscriptionState{ID: id, LagRecords: rng.Uint64N(20)}
			w.offer(s)
			if s.LagRecords > 0 {
				all = append(all, s)
			}
		}
		slices.SortFunc(all, byLag)
		if diff := cmp.Diff(append([]SubscriptionState{}, w.subs...), all[:limit]); diff != "" {
			t.Errorf("limit %d (-got +want):\n%s", limit, diff)
		}
	}
}
