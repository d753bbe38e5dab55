package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (h *house) subscribe(id uint64, n Name, lag uint64) {
	h.subs.subs = append(h.subs.subs, Subscription{
		ID: id, Name: n, Shard: 1, Remote: fmt.Sprintf("10.0.0.%d:5000", id), Principal: "t1/bob", State: "blocked", OnFull: "DropNew",
		NextOffset: 100, LagRecords: lag, LagEntries: lag / 2, LagBytes: lag * 10, Delivered: 7, Dropped: 10 - id,
		Since: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	})
}

func ids(list SubscriptionList) []uint64 {
	var out []uint64
	for _, s := range list.Subscriptions {
		out = append(out, s.ID)
	}
	return out
}

// B04: somebody asks who is slow, and is told which subscription, from where and
// whose.
func TestWhoIsSlow(t *testing.T) {
	h := newHouse(t)
	for id, lag := range []uint64{1: 5, 2: 900, 3: 0, 4: 900} {
		if id > 0 {
			h.subscribe(uint64(id), named("s"), lag)
		}
	}
	got, err := h.manager().Subscriptions(t.Context(), SubscriptionQuery{Stream: named("s"), Sort: SortLag, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := SubscriptionList{Total: 4, Subscriptions: []Subscription{h.subs.subs[1]}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	slow := got.Subscriptions[0]
	if slow.Remote != "10.0.0.2:5000" || slow.Principal != "t1/bob" || slow.State != "blocked" || slow.LagBytes != 9000 {
		t.Errorf("got %+v", slow)
	}
}

func TestListSubscriptions(t *testing.T) {
	h := newHouse(t)
	h.subscribe(3, named("a"), 1)
	h.subscribe(1, named("b"), 3)
	h.subscribe(2, Name{"t2", "default", "a"}, 2)
	for _, tc := range []struct {
		name   string
		client *Client
		query  SubscriptionQuery
		want   []uint64
	}{
		{"by id", h.client(systemTenant, "stream.manage:*"), SubscriptionQuery{}, []uint64{1, 2, 3}},
		{"by lag", h.client(systemTenant, "stream.manage:*"), SubscriptionQuery{Sort: SortLag}, []uint64{1, 2, 3}},
		{"by drops", h.client(systemTenant, "stream.manage:*"), SubscriptionQuery{Sort: SortDropped}, []uint64{1, 2, 3}},
		{"limit", h.client(systemTenant, "stream.manage:*"), SubscriptionQuery{Sort: SortID, Limit: 2}, []uint64{1, 2}},
		{"own tenant", h.manager(), SubscriptionQuery{}, []uint64{1, 3}},
		{"one stream", h.manager(), SubscriptionQuery{Stream: named("a")}, []uint64{3}},
		{"only what may be managed", h.client("t1", "stream.manage:stream:t1/default/b"), SubscriptionQuery{}, []uint64{1}},
		{"reading is not enough", h.client("t1", "stream.subscribe:*"), SubscriptionQuery{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.client.Subscriptions(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ids(got), tc.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
	if _, err := h.client("t1", "stream.subscribe:*").Subscriptions(t.Context(), SubscriptionQuery{Stream: named("a")}); !errors.Is(err, &Error{Code: CodeForbidden}) {
		t.Errorf("got %v", err)
	}
	token := h.token("t1", "stream.manage:*")
	for _, bad := range []string{"sort=size", "stream=x", "stream=a/b/c/d", "stream=a//c", "limit=-1"} {
		if status, _, body := h.request(http.MethodGet, "/v1/subscriptions?"+bad, token, ""); status != 400 || codeOf(t, body) != CodeInvalidRequest {
			t.Errorf("%s: got %d %s", bad, status, body)
		}
	}
}

func TestEndSubscription(t *testing.T) {
	h := newHouse(t)
	h.subscribe(1, named("a"), 0)
	h.subscribe(2, Name{"t2", "default", "a"}, 0)
	c := h.manager()
	if err := c.EndSubscription(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for id, who := range map[uint64]*Client{1: c, 2: c, 3: c} { // gone, somebody else's, never there
		err := who.EndSubscription(t.Context(), id)
		if !errors.Is(err, &Error{Code: CodeNotFound}) {
			t.Errorf("%d: got %v", id, err)
		}
	}
	if got, _ := h.subs.Subscriptions(t.Context(), Name{}); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("got %+v", got)
	}
	token := h.token("t1", "stream.manage:*")
	// What a caller may not see answers like what is not there, to the letter.
	_, _, others := h.request(http.MethodDelete, "/v1/subscriptions/2", token, "")
	_, _, never := h.request(http.MethodDelete, "/v1/subscriptions/3", token, "")
	if diff := cmp.Diff(strings.ReplaceAll(others, "2", "3"), never); diff != "" {
		t.Errorf("somebody else's subscription shows (-others +never there):\n%s", diff)
	}
	for _, bad := range []string{"x", "-1", "18446744073709551616"} {
		if status, _, body := h.request(http.MethodDelete, "/v1/subscriptions/"+bad, token, ""); status != 400 {
			t.Errorf("%s: got %d %s", bad, status, body)
		}
	}
}
