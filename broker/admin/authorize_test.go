package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker/auth"
)

func TestTokens(t *testing.T) {
	h := newHouse(t)
	good := h.token("t1", "stream.manage:*")
	now := time.Now()
	mint := func(c auth.Claims) string {
		c.Subject, c.Tenant = "alice", "t1"
		if c.IssuedAt.IsZero() {
			c.IssuedAt, c.Expires = now, now.Add(time.Hour)
		}
		token, err := auth.Mint(h.keys["t1"], c)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for _, tc := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"good", []string{"Bearer " + good}, 200},
		{"scheme in lower case", []string{"bearer " + good}, 200},
		{"control plane token", []string{"Bearer " + mint(auth.Claims{Audience: auth.AudienceControlPlane})}, 200},
		{"another audience", []string{"Bearer " + mint(auth.Claims{Audience: "x"})}, 401},
		{"expired", []string{"Bearer " + mint(auth.Claims{IssuedAt: now.Add(-time.Hour), Expires: now.Add(-time.Minute - time.Second)})}, 401},
		{"none", nil, 401},
		{"empty", []string{""}, 401},
		{"no scheme", []string{good}, 401},
		{"no token", []string{"Bearer "}, 401},
		{"basic", []string{"Basic YTpi"}, 401},
		{"two", []string{"Bearer " + good, "Bearer " + good}, 401},
		{"cut", []string{"Bearer " + good[:len(good)-6]}, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, path := range []string{"/v1/streams", "/v1/subscriptions"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range tc.headers {
					req.Header.Add("Authorization", v)
				}
				resp, err := h.server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != tc.want {
					t.Errorf("%s: got %d, want %d", path, resp.StatusCode, tc.want)
				}
				if tc.want == 401 && resp.Header.Get("WWW-Authenticate") != "Bearer" {
					t.Error("no challenge")
				}
			}
		})
	}
}

func TestEveryCallNeedsAToken(t *testing.T) {
	h := newHouse(t)
	for _, call := range []string{
		"GET /v1/streams", "POST /v1/streams", "GET /v1/streams/t1/default/s", "PATCH /v1/streams/t1/default/s",
		"DELETE /v1/streams/t1/default/s", "GET /v1/subscriptions", "DELETE /v1/subscriptions/1",
	} {
		method, path, _ := strings.Cut(call, " ")
		status, _, body := h.request(method, path, "", "{}")
		if status != 401 || codeOf(t, body) != CodeUnauthenticated {
			t.Errorf("%s: got %d %s", call, status, body)
		}
	}
}

func TestSystemTenant(t *testing.T) {
	h := newHouse(t)
	everywhere := h.client(systemTenant, "stream.manage:*")
	if _, _, err := everywhere.CreateStream(t.Context(), StreamSpec{Name: named("s")}, ""); err != nil {
		t.Error(err)
	}
	narrow := h.client(systemTenant, "stream.manage:stream:t2/*")
	if err := narrow.DeleteStream(t.Context(), named("s")); !errors.Is(err, &Error{Code: CodeForbidden}) {
		t.Errorf("got %v", err)
	}
	// Without a system tenant its tokens are like any others.
	plain := newHouse(t, func(c *Config) {
		a, ok := c.Authorizer.(TokenAuthorizer)
		if !ok {
			t.Fatal("no token authorizer")
		}
		a.SystemTenant = ""
		c.Authorizer = a
	})
	if _, err := plain.client(systemTenant, "stream.manage:*").Stream(t.Context(), named("s")); !errors.Is(err, &Error{Code: CodeForbidden}) {
		t.Errorf("got %v", err)
	}
}

type brokenAuthorizer struct{ err error }

// Authorize fails.
func (b brokenAuthorizer) Authorize(context.Context, string) (Principal, error) { return nil, b.err }

func TestAuthorizerThatCannotTell(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{errors.New("api server away: secret"), 500},
		{&Error{Code: CodeDraining, Retry: RetryNow, Message: "later"}, 503},
	} {
		h := newHouse(t, func(c *Config) { c.Authorizer = brokenAuthorizer{tc.err} })
		status, _, body := h.request(http.MethodGet, "/v1/streams", "x", "")
		if status != tc.want || strings.Contains(body, "secret") {
			t.Errorf("got %d %s", status, body)
		}
	}
}
