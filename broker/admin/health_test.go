package admin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadiness(t *testing.T) {
	checks := []Check{{Name: "log", Ready: true}, {Name: "quic", Ready: true}}
	h := newHouse(t, func(c *Config) {
		c.Readiness = func(context.Context) []Check { return checks }
	})
	c := &Client{BaseURL: h.server.URL + "/", HTTP: h.server.Client()} // no token
	got, err := c.Readiness(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, Readiness{Ready: true, Checks: checks}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	checks[1] = Check{Name: "quic", Message: "draining"}
	got, err = c.Readiness(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, Readiness{Checks: checks}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if status, _, body := h.request("GET", "/readyz", "", ""); status != 503 || !strings.Contains(body, "draining") {
		t.Errorf("got %d %s", status, body)
	}
}

func TestReadinessWithoutChecks(t *testing.T) {
	h := newHouse(t)
	if status, _, body := h.request("GET", "/readyz", "", ""); status != 200 || body != `{"ready":true,"checks":[]}`+"\n" {
		t.Errorf("got %d %s", status, body)
	}
}

func TestLiveness(t *testing.T) {
	var sick error
	h := newHouse(t, func(c *Config) {
		c.Liveness = func() error { return sick }
		c.Readiness = func(context.Context) []Check { return []Check{{Name: "log"}} } // not ready is not sick
	})
	c := &Client{BaseURL: h.server.URL, HTTP: h.server.Client()}
	if err := c.Live(t.Context()); err != nil {
		t.Error(err)
	}
	sick = errors.New("stuck")
	if err := c.Live(t.Context()); err == nil || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("got %v", err)
	}
}
