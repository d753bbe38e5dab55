package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"felix.dev/felix/broker/auth"
)

// Orders of a list of subscriptions.
const (
	SortID      = "id"      // oldest first; the default
	SortLag     = "lag"     // furthest behind first
	SortDropped = "dropped" // most records dropped first
)

// SubscriptionList is the answer of GET /v1/subscriptions.
type SubscriptionList struct {
	Subscriptions []Subscription `json:"subscriptions"`
	Total         int            `json:"total"` // of those that the caller may see, before the limit
}

// maxSubscriptions bounds what one list answers with.
const maxSubscriptions = 10_000

// listSubscriptions answers who reads, and who is slow.
func (s *Server) listSubscriptions(w http.ResponseWriter, r *http.Request, p Principal) error {
	q := r.URL.Query()
	limit, err := limitOf(q, maxSubscriptions)
	if err != nil {
		return err
	}
	order, err := orderOf(q.Get("sort"))
	if err != nil {
		return err
	}
	var of Name
	if text := q.Get("stream"); text != "" {
		if of, err = parseName(text); err != nil {
			return err
		}
		if err := requireManage(p, of); err != nil {
			return err
		}
	}
	all, err := s.cfg.Subscriptions.Subscriptions(r.Context(), of)
	if err != nil {
		return err
	}
	// Readers of one stream are many: the permission is looked up once for each
	// stream.
	may := make(map[Name]bool)
	visible := slices.DeleteFunc(slices.Clone(all), func(sub Subscription) bool {
		ok, known := may[sub.Name]
		if !known {
			ok = p.Allows(auth.StreamManage, sub.Name)
			may[sub.Name] = ok
		}
		return !ok
	})
	slices.SortFunc(visible, order)
	page := SubscriptionList{Subscriptions: append([]Subscription{}, visible[:min(limit, len(visible))]...), Total: len(visible)}
	writeJSON(w, http.StatusOK, page)
	return nil
}

// endSubscription ends one reader. To who may not, it is as if it were not there.
func (s *Server) endSubscription(w http.ResponseWriter, r *http.Request, p Principal) error {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil {
		return invalid("subscription %q: want a number", r.PathValue("id"))
	}
	sub, err := s.cfg.Subscriptions.Subscription(r.Context(), id)
	if err != nil && toError(err).Code != CodeNotFound {
		return err
	}
	if err != nil || !p.Allows(auth.StreamManage, sub.Name) {
		return noSubscription(id) // in both cases the same words
	}
	if err := s.cfg.Subscriptions.EndSubscription(r.Context(), id); err != nil {
		return err
	}
	s.cfg.Log.Info("subscription ended", "subscription", id, "stream", sub.String(),
		"remote", sub.Remote, "principal", sub.Principal, "by", p.ID())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func noSubscription(id uint64) *Error { return notFound("no subscription %d", id) }

func orderOf(sort string) (func(a, b Subscription) int, error) {
	byID := func(a, b Subscription) int { return cmp.Compare(a.ID, b.ID) }
	switch sort {
	case "", SortID:
		return byID, nil
	case SortLag:
		return func(a, b Subscription) int {
			return cmp.Or(cmp.Compare(b.LagRecords, a.LagRecords), cmp.Compare(b.LagBytes, a.LagBytes), byID(a, b))
		}, nil
	case SortDropped:
		return func(a, b Subscription) int { return cmp.Or(cmp.Compare(b.Dropped, a.Dropped), byID(a, b)) }, nil
	}
	return nil, invalid("sort %q: want %s, %s or %s", sort, SortID, SortLag, SortDropped)
}

// parseName reads "tenant/namespace/stream"; the error is an *Error.
func parseName(s string) (Name, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return Name{}, invalid("stream %q: want tenant/namespace/stream", s)
	}
	return Name{Tenant: parts[0], Namespace: parts[1], Stream: parts[2]}, nil
}
