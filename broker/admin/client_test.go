package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnswersThatAreNotFromABroker(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		code   Code
		part   string
	}{
		{"proxy", 502, "<html>bad gateway</html>", CodeInternal, "bad gateway"},
		{"empty", 500, "", CodeInternal, "500"},
		{"long", 500, strings.Repeat("x", 1<<20), CodeInternal, "xxx"},
		{"json without a code", 500, `{"error":"x"}`, CodeInternal, "error"},
		{"without a retry class", 429, `{"code":"overloaded","message":"m"}`, CodeOverloaded, "m"},
		{"code of a later release", 400, `{"code":"brand_new","message":"m","retry":"fatal"}`, "brand_new", "m"},
		{"success without json", 200, "hello", "", "read answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer srv.Close()
			_, err := (&Client{BaseURL: srv.URL, HTTP: srv.Client()}).Stream(t.Context(), named("s"))
			if err == nil || !strings.Contains(err.Error(), tc.part) || len(err.Error()) > 1000 {
				t.Fatalf("got %.300v", err)
			}
			if e, ok := errors.AsType[*Error](err); ok != (tc.code != "") || ok && (e.Code != tc.code || e.Status != tc.status || e.Retry == "") {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestClientReportsWhatKeepsItFromTheBroker(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c := &Client{BaseURL: srv.URL}
	if _, err := c.Streams(t.Context(), "", ""); err == nil {
		t.Error("no error")
	} else if _, ok := errors.AsType[*Error](err); ok {
		t.Errorf("a broker that was not reached has answered: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.DeleteStream(ctx, named("s")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := (&Client{BaseURL: "::"}).Readiness(t.Context()); err == nil {
		t.Error("no error")
	}
}
