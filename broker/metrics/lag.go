package metrics

import (
	"cmp"
	"slices"
)

// worst keeps the subscriptions that lag most, at most max of them, the one
// furthest behind first.
type worst struct {
	max  int
	subs []SubscriptionState // ordered by byLag
}

// offer takes s in if it lags more than one that is there.
func (w *worst) offer(s SubscriptionState) {
	if s.LagRecords == 0 || w.max == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(w.subs, s, byLag)
	if at == w.max {
		return
	}
	if len(w.subs) == w.max {
		w.subs = w.subs[:w.max-1]
	}
	w.subs = slices.Insert(w.subs, at, s)
}

// byLag orders by lag, most first; among equals the older subscription (lower
// id) comes first, so that the choice is the same at every scrape.
func byLag(a, b SubscriptionState) int {
	return cmp.Or(cmp.Compare(b.LagRecords, a.LagRecords), cmp.Compare(a.ID, b.ID))
}
