package settings

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The first broker that can be reached is asked, also with a body, and the next request goes there at once.
func TestAdminOfACluster(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.Method+" "+r.Host+" "+r.URL.Path+" "+string(body))
	}))
	defer srv.Close()
	alive := strings.TrimPrefix(srv.URL, "http://")
	s := &Settings{
		AdminAddr: Value{Value: nobody(t) + ", " + alive + "," + nobody(t), From: "--admin"}, Token: Value{Value: "x", From: "--token"},
	}
	c, err := s.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer c.HTTP.CloseIdleConnections()
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.BaseURL+"/v1/streams", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.HTTP.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	want := "POST " + alive + " /v1/streams body"
	if diff := cmp.Diff([]string{want, want}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// If nobody can be reached, all that was tried is in the error; the end of the context is not tried again.
func TestAdminOfNobody(t *testing.T) {
	a, b := nobody(t), nobody(t)
	s := &Settings{AdminAddr: Value{Value: a + "," + b, From: "--admin"}, Token: Value{Value: "x", From: "--token"}}
	c, err := s.Admin()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Readiness(t.Context())
	if err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Errorf("got %v, want both addresses", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = c.Readiness(ctx); err == nil || strings.Contains(err.Error(), a) && strings.Contains(err.Error(), b) {
		t.Errorf("after the end of the context: got %v", err)
	}
}

// A broker that takes connections and does not answer is passed over for a question, and not for a change.
func TestAdminOfABrokerThatHangs(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method)
		_, _ = io.WriteString(w, "answer")
	}))
	defer srv.Close()
	a, err := newAnyBroker(&http.Transport{}, []string{"http://" + hangs.Addr().String(), srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseIdleConnections()
	a.patience = 50 * time.Millisecond
	c := &http.Client{Transport: a}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	change, err := http.NewRequestWithContext(ctx, http.MethodPost, a.brokers[0].String(), strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := c.Do(change); err == nil {
		_ = answer.Body.Close()
		t.Error("a change was sent to two brokers")
	}
	answer, err := c.Get(a.brokers[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "answer" {
		t.Errorf("got %q, %v", body, err)
	}
	if diff := cmp.Diff([]string{http.MethodGet}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
