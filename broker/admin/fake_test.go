package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/catalog"
)

// fakeStreams is Streams over a real catalog.
type fakeStreams struct {
	cat *catalog.Catalog
	err error // returned by everything, if set
}

func (f *fakeStreams) view(e catalog.Entry) Stream {
	st := Stream{Spec: SpecOf(e.Spec), Incarnation: e.Incarnation, CreatedAt: e.CreatedAt}
	for i, first := range e.FirstOffsets {
		st.Shards = append(st.Shards, Shard{Shard: uint32(i), OldestOffset: first, NextOffset: first})
	}
	return st
}

// Stream implements StreamReader.
func (f *fakeStreams) Stream(_ context.Context, n Name) (Stream, error) {
	if f.err != nil {
		return Stream{}, f.err
	}
	e, err := f.cat.Get(n.CatalogName())
	return f.view(e), err
}

// Streams implements StreamReader.
func (f *fakeStreams) Streams(context.Context) ([]Stream, error) {
	var all []Stream
	for _, e := range f.cat.List() {
		all = append(all, f.view(e))
	}
	return all, f.err
}

// CreateStream implements StreamWriter.
func (f *fakeStreams) CreateStream(_ context.Context, spec StreamSpec, requestID string) (Stream, bool, error) {
	if f.err != nil {
		return Stream{}, false, f.err
	}
	want, err := spec.CatalogSpec()
	if err != nil {
		return Stream{}, false, err
	}
	e, created, err := f.cat.Create(want, requestID)
	return f.view(e), created, err
}

// UpdateStream implements StreamWriter.
func (f *fakeStreams) UpdateStream(_ context.Context, n Name, ch StreamChange) (Stream, error) {
	if f.err != nil {
		return Stream{}, f.err
	}
	e, err := f.cat.Update(n.CatalogName(), ch.CatalogChange())
	return f.view(e), err
}

// DeleteStream implements StreamWriter.
func (f *fakeStreams) DeleteStream(_ context.Context, n Name) error {
	e, err := f.cat.Get(n.CatalogName())
	if err == nil {
		_, err = f.cat.Delete(n.CatalogName(), e.FirstOffsets)
	}
	return errors.Join(f.err, err)
}

// fakeSubscriptions is Subscriptions over a list.
type fakeSubscriptions struct {
	mu   sync.Mutex
	subs []Subscription
}

// Subscriptions implements Subscriptions.
func (f *fakeSubscriptions) Subscriptions(_ context.Context, of Name) ([]Subscription, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Subscription
	for _, s := range f.subs {
		if of == (Name{}) || s.Name == of {
			out = append(out, s)
		}
	}
	return out, nil
}

// Subscription implements Subscriptions.
func (f *fakeSubscriptions) Subscription(_ context.Context, id uint64) (Subscription, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subs {
		if s.ID == id {
			return s, nil
		}
	}
	return Subscription{}, &Error{Code: CodeNotFound, Retry: RetryFatal, Message: "another wording"}
}

// EndSubscription implements Subscriptions.
func (f *fakeSubscriptions) EndSubscription(_ context.Context, id uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range f.subs {
		if s.ID == id {
			f.subs = append(f.subs[:i:i], f.subs[i+1:]...)
			return nil
		}
	}
	return noSubscription(id)
}

// house is a server with all that it needs, and a key to mint tokens with.
type house struct {
	t       *testing.T
	cfg     Config
	keys    map[string]auth.SigningKey
	streams *fakeStreams
	subs    *fakeSubscriptions
	server  *httptest.Server
}

const systemTenant = "felix-system"

func newHouse(t *testing.T, change ...func(*Config)) *house {
	t.Helper()
	h := &house{t: t, keys: map[string]auth.SigningKey{}, subs: &fakeSubscriptions{}}
	cat, err := catalog.Open(catalog.Config{Path: filepath.Join(t.TempDir(), "catalog.json")})
	if err != nil {
		t.Fatal(err)
	}
	h.streams = &fakeStreams{cat: cat}
	sets := auth.StaticKeys{}
	for _, tenant := range []string{"t1", "t2", systemTenant} {
		key, err := auth.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		h.keys[tenant] = key
		if sets[tenant], err = auth.NewKeySet(key.Public()); err != nil {
			t.Fatal(err)
		}
	}
	verifier, err := auth.NewVerifier(auth.Config{
		Keys: sets, Audiences: []string{auth.AudienceBroker, auth.AudienceControlPlane},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.cfg = Config{
		Streams: h.streams, Subscriptions: h.subs, Gatherer: prometheus.NewRegistry(),
		Authorizer: TokenAuthorizer{Verifier: verifier, SystemTenant: systemTenant},
	}
	for _, c := range change {
		c(&h.cfg)
	}
	s, err := New(h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewServer(s.Handler())
	t.Cleanup(h.server.Close)
	return h
}

// token mints a token of a tenant with permissions.
func (h *house) token(tenant string, perms ...string) string {
	h.t.Helper()
	now := time.Now()
	token, err := auth.Mint(h.keys[tenant], auth.Claims{
		Subject: "alice", Tenant: tenant, Permissions: perms, IssuedAt: now, Expires: now.Add(time.Hour),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

func (h *house) client(tenant string, perms ...string) *Client {
	h.t.Helper()
	return &Client{BaseURL: h.server.URL, Token: h.token(tenant, perms...), HTTP: h.server.Client()}
}

// manager may manage all streams of t1.
func (h *house) manager() *Client { return h.client("t1", "stream.manage:*") }

// request sends anything and returns status, headers and body.
func (h *house) request(method, path, token, body string) (int, http.Header, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := h.server.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

// codeOf reads the code of an error's body.
func codeOf(t *testing.T, body string) Code {
	t.Helper()
	var e Error
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Code == "" || e.Message == "" || e.Retry == "" {
		t.Fatalf("no error in %q: %v", body, err)
	}
	return e.Code
}

func named(s string) Name { return Name{Tenant: "t1", Namespace: "default", Stream: s} }

func (h *house) create(names ...Name) {
	h.t.Helper()
	for _, n := range names {
		if _, _, err := h.streams.CreateStream(h.t.Context(), StreamSpec{Name: n}, ""); err != nil {
			h.t.Fatal(err)
		}
	}
}
