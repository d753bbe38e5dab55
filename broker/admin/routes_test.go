package admin

import (
	"net/http"
	"strings"
	"testing"
)

func TestPathsAndMethods(t *testing.T) {
	h := newHouse(t)
	token := h.token("t1", "stream.manage:*")
	for _, tc := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{http.MethodGet, "/", 404, ""},
		{http.MethodGet, "/v1", 404, ""},
		{http.MethodGet, "/v1/streams/t1/default", 404, ""},
		{http.MethodGet, "/v1/streams/t1/default/a/b", 404, ""},
		{http.MethodGet, "/v2/streams", 404, ""},
		{http.MethodPut, "/v1/streams", 405, "GET, HEAD, POST"},
		{http.MethodPost, "/v1/streams/t1/default/a", 405, "DELETE, GET, HEAD, PATCH"},
		{http.MethodPost, "/v1/subscriptions", 405, "GET, HEAD"},
		{http.MethodGet, "/v1/subscriptions/1", 405, "DELETE"},
		{http.MethodPost, "/metrics", 405, "GET, HEAD"},
		{http.MethodPost, "/healthz", 405, "GET, HEAD"},
		{http.MethodHead, "/v1/streams", 200, ""},
		{http.MethodGet, "/v1/streams", 200, ""},
	} {
		status, header, body := h.request(tc.method, tc.path, token, "")
		if status != tc.want || header.Get("Allow") != tc.allow {
			t.Errorf("%s %s: got %d, allow %q", tc.method, tc.path, status, header.Get("Allow"))
		}
		if status >= 400 {
			codeOf(t, body)
		}
		if got := header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %s: got content type %q", tc.method, tc.path, got)
		}
	}
}

func TestContentType(t *testing.T) {
	h := newHouse(t)
	for _, tc := range []struct {
		contentType string
		want        int
	}{
		{"", 201},
		{"application/json", 200},
		{"application/json; charset=utf-8", 200},
		{"text/plain", 415},
		{"application/x-www-form-urlencoded", 415},
		{";", 415},
	} {
		checkContentType(t, h, tc.contentType, tc.want)
	}
}

func checkContentType(t *testing.T, h *house, ct string, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/v1/streams",
		strings.NewReader(`{"spec":{"tenant":"t1","stream":"s"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if ct != "" {
		req.Header.Set("Content-Type", ct)
	}
	req.Header.Set("Authorization", "Bearer "+h.token("t1", "stream.manage:*"))
	resp, err := h.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("%q: got %d, want %d", ct, resp.StatusCode, want)
	}
}
