package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/catalog"
)

func TestStreamLifeCycle(t *testing.T) {
	h := newHouse(t)
	c := h.manager()
	spec := StreamSpec{
		Name: named("orders"), Shards: 2, Durability: "Durable", Routing: "jump_hash",
		Retention: Retention{MaxBytes: 1 << 30, MaxAge: Duration(90 * time.Minute)},
		Queue:     Queue{Entries: 8, Bytes: 1 << 16, OnFull: "CatchUp"},
		TailBytes: 1 << 20, Fsync: Fsync{Mode: "Interval", Every: Duration(time.Second)},
	}
	st, created, err := c.CreateStream(t.Context(), spec, "r1")
	if err != nil || !created {
		t.Fatalf("got %v, %v", created, err)
	}
	if diff := cmp.Diff(st.Spec, spec); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if len(st.Shards) != 2 || st.Incarnation == "" {
		t.Errorf("got %+v", st)
	}
	got, err := c.Stream(t.Context(), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, st); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	shards, tail := uint32(3), int64(1<<21)
	changed, err := c.UpdateStream(t.Context(), spec.Name, StreamChange{
		Shards: &shards, TailBytes: &tail, Retention: &Retention{MaxBytes: 5}, Queue: &Queue{Entries: 9}, Fsync: &Fsync{Mode: "Always"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := spec
	want.Shards, want.TailBytes, want.Retention, want.Queue, want.Fsync = 3, 1<<21, Retention{MaxBytes: 5}, Queue{Entries: 9}, Fsync{Mode: "Always"}
	if diff := cmp.Diff(changed.Spec, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if err := c.DeleteStream(t.Context(), spec.Name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.DeleteStream(t.Context(), spec.Name); !errors.Is(err, &Error{Code: CodeNotFound}) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.Stream(t.Context(), spec.Name); !errors.Is(err, &Error{Code: CodeNotFound}) {
		t.Errorf("got %v", err)
	}
	if _, err := c.UpdateStream(t.Context(), spec.Name, StreamChange{}); !errors.Is(err, &Error{Code: CodeNotFound}) {
		t.Errorf("got %v", err)
	}
}

// B88: the reply is lost, the request is sent again with its id: success.
func TestCreateIsRetriedAfterALostReply(t *testing.T) {
	h := newHouse(t)
	c := h.manager()
	dropped := &http.Client{Transport: dropReply{h.server.Client().Transport}}
	lost := *c
	lost.HTTP = dropped
	if _, _, err := lost.CreateStream(t.Context(), StreamSpec{Name: named("s")}, "r1"); !errors.Is(err, errDropped) {
		t.Fatalf("got %v", err)
	}
	// In the meantime somebody has changed a setting.
	if _, err := c.UpdateStream(t.Context(), named("s"), StreamChange{Retention: &Retention{MaxBytes: 1}}); err != nil {
		t.Fatal(err)
	}
	st, created, err := c.CreateStream(t.Context(), StreamSpec{Name: named("s")}, "r1")
	if err != nil || created || st.Spec.Retention.MaxBytes != 1 {
		t.Fatalf("got %+v, %v, %v", st, created, err)
	}
	_, _, err = c.CreateStream(t.Context(), StreamSpec{Name: named("s")}, "r2")
	if !errors.Is(err, &Error{Code: CodeAlreadyExists}) {
		t.Errorf("another request: got %v", err)
	}
}

var errDropped = errors.New("reply dropped")

type dropReply struct{ http.RoundTripper }

// RoundTrip lets the request through and loses the answer.
func (d dropReply) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	return nil, errDropped
}

func TestCreateRefuses(t *testing.T) {
	h := newHouse(t)
	token := h.token("t1", "stream.manage:*")
	for _, tc := range []struct {
		name, body string
		status     int
		part       string
	}{
		{"no body", ``, 400, "EOF"},
		{"no json", `{`, 400, "body"},
		{"no object", `[]`, 400, "body"},
		{"more than one", `{}{}`, 400, "more"},
		{"unknown setting", `{"spec":{"tenant":"t1","stream":"s","shard":2}}`, 400, `"shard"`},
		{"no name", `{"spec":{}}`, 400, "tenant"},
		{"bad name", `{"spec":{"tenant":"t1","stream":"a/b"}}`, 400, "stream"},
		{"bad durability", `{"spec":{"tenant":"t1","stream":"s","durability":"Forever"}}`, 400, "durability"},
		{"fsync of quorum", `{"spec":{"tenant":"t1","stream":"s","durability":"Quorum","fsync":{"mode":"Always"}}}`, 400, "fsync"},
		{"bad routing", `{"spec":{"tenant":"t1","stream":"s","routing":"magic"}}`, 400, "routing"},
		{"bad duration", `{"spec":{"tenant":"t1","stream":"s","retention":{"max_age":"long"}}}`, 400, "duration"},
		{"duration as a number", `{"spec":{"tenant":"t1","stream":"s","retention":{"max_age":5}}}`, 400, "body"},
		{"negative shards", `{"spec":{"tenant":"t1","stream":"s","shards":-1}}`, 400, "body"},
		{"long request id", `{"request_id":"` + strings.Repeat("x", 129) + `","spec":{"tenant":"t1","stream":"s"}}`, 400, "request_id"},
		{"too large", `{"spec":{"tenant":"` + strings.Repeat("x", 2<<20) + `"}}`, 413, "larger"},
		{"other tenant", `{"spec":{"tenant":"t2","stream":"s"}}`, 403, "stream.manage"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, _, body := h.request(http.MethodPost, "/v1/streams", token, tc.body)
			if status != tc.status || !strings.Contains(body, strings.ReplaceAll(tc.part, `"`, `\"`)) {
				t.Errorf("got %d %s, want %d with %q", status, body, tc.status, tc.part)
			}
			codeOf(t, body)
		})
	}
}

func TestCreateInTheDefaultNamespaceNeedsPermissionThere(t *testing.T) {
	h := newHouse(t)
	spec := StreamSpec{Name: Name{Tenant: "t1", Stream: "s"}}
	if _, _, err := h.client("t1", "stream.manage:stream:t1/other/*").CreateStream(t.Context(), spec, ""); !errors.Is(err, &Error{Code: CodeForbidden}) {
		t.Errorf("got %v", err)
	}
	if _, _, err := h.client("t1", "stream.manage:stream:t1/default/*").CreateStream(t.Context(), spec, ""); err != nil {
		t.Error(err)
	}
}

func TestListStreams(t *testing.T) {
	h := newHouse(t)
	var all []string
	for _, n := range []string{"a", "b", "c"} {
		for _, tenant := range []string{"t1", "t2"} {
			h.create(Name{tenant, "default", n}, Name{tenant, "other", n})
		}
	}
	for _, tc := range []struct {
		name              string
		client            *Client
		tenant, namespace string
		want              string
	}{
		{"own tenant", h.client("t1", "stream.manage:*"), "", "", "t1/default/a t1/default/b t1/default/c t1/other/a t1/other/b t1/other/c"},
		{"one namespace", h.client("t1", "stream.manage:*"), "", "other", "t1/other/a t1/other/b t1/other/c"},
		{"other tenant", h.client("t1", "stream.manage:*"), "t2", "", ""},
		{"what may be subscribed", h.client("t1", "stream.subscribe:stream:t1/*/b"), "", "", "t1/default/b t1/other/b"},
		{"publishing does not show", h.client("t1", "stream.publish:*"), "", "", ""},
		{"no permissions", h.client("t1"), "", "", ""},
		{"system", h.client(systemTenant, "stream.manage:stream:*/a"), "", "", "t1/default/a t1/other/a t2/default/a t2/other/a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.client.Streams(t.Context(), tc.tenant, tc.namespace)
			if err != nil {
				t.Fatal(err)
			}
			all = nil
			for _, st := range got {
				all = append(all, st.Spec.String())
			}
			if diff := cmp.Diff(strings.Join(all, " "), tc.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestListStreamsInPages(t *testing.T) {
	h := newHouse(t)
	for i := range 7 {
		h.create(named(fmt.Sprint(i)))
	}
	token := h.token("t1", "stream.manage:*")
	path := "/v1/streams?limit=3"
	_, _, first := h.request(http.MethodGet, path, token, "")
	if !strings.Contains(first, `"next":"t1/default/2"`) {
		t.Fatalf("got %s", first)
	}
	// The stream that the page ended with is gone when the next one is asked for.
	if err := h.manager().DeleteStream(t.Context(), named("2")); err != nil {
		t.Fatal(err)
	}
	_, _, second := h.request(http.MethodGet, path+"&after=t1/default/2", token, "")
	if !strings.Contains(second, `"stream":"3"`) || strings.Contains(second, `"stream":"1"`) || !strings.Contains(second, `"next":"t1/default/5"`) {
		t.Errorf("got %s", second)
	}
	_, _, third := h.request(http.MethodGet, path+"&after=t1/default/5", token, "")
	if strings.Contains(third, `"next":`) {
		t.Errorf("got %s", third)
	}
	for _, bad := range []string{"limit=0", "limit=x", "after=x"} {
		if status, _, body := h.request(http.MethodGet, "/v1/streams?"+bad, token, ""); status != 400 {
			t.Errorf("%s: got %d %s", bad, status, body)
		}
	}
}

func TestClientReadsAllPages(t *testing.T) {
	h := newHouse(t)
	cat, err := catalog.Open(catalog.Config{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	h.streams.cat = cat
	for i := range maxPage + 5 {
		h.create(named(fmt.Sprint(i)))
	}
	got, err := h.manager().Streams(t.Context(), "", "")
	if err != nil || len(got) != maxPage+5 {
		t.Errorf("got %d, %v", len(got), err)
	}
}

// What a caller may not do is refused before it is looked at whether the stream
// exists.
func TestAnswersDoNotTell(t *testing.T) {
	h := newHouse(t)
	h.create(named("there"), Name{"t2", "default", "there"})
	reader := h.token("t1", "stream.subscribe:*")
	stranger := h.token("t1", "stream.publish:*")
	other := h.token("t2", "stream.manage:*")
	for _, tc := range []struct {
		method, token, body string
		want                int
	}{
		{http.MethodGet, stranger, "", 403},
		{http.MethodGet, other, "", 403},
		{http.MethodPatch, reader, "{}", 403},
		{http.MethodPatch, other, "{}", 403},
		{http.MethodDelete, reader, "", 403},
		{http.MethodDelete, other, "", 403},
	} {
		there, _, a := h.request(tc.method, "/v1/streams/t1/default/there", tc.token, tc.body)
		gone, _, b := h.request(tc.method, "/v1/streams/t1/default/gone", tc.token, tc.body)
		if there != tc.want || gone != tc.want || strings.ReplaceAll(a, "there", "gone") != b {
			t.Errorf("%s: got %d %s and %d %s", tc.method, there, a, gone, b)
		}
	}
	if status, _, _ := h.request(http.MethodGet, "/v1/streams/t1/default/there", reader, ""); status != 200 {
		t.Errorf("got %d", status)
	}
	if status, _, body := h.request(http.MethodGet, "/v1/streams/t1/default/a%2Fb", reader, ""); status != 400 {
		t.Errorf("got %d %s", status, body)
	}
}
