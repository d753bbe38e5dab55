package broker

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// A broker that waits for its cluster says so: it lives, is not ready, and answers who
// asks about the cluster.
func TestWaitingForTheClusterCanBeAsked(t *testing.T) {
	c := newTestCluster(t)
	b := c.add("a", func(cfg *Config) {
		cfg.Cluster.Join = []string{freeAddr(t, "tcp")} // nobody is there
		cfg.Admin = Admin{Listen: freeAddr(t, "tcp")}
	})
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() {
		_, err := Start(ctx, b.cfg)
		started <- err
	}()
	get := func(path string) (status int, body map[string]any) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.cfg.Admin.Listen+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}).Do(req)
		if err != nil {
			return 0, nil
		}
		defer func() { _ = r.Body.Close() }()
		_ = json.NewDecoder(r.Body).Decode(&body) // whatever it is
		return r.StatusCode, body
	}
	eventually(t, "the broker lives", func() bool { status, _ := get("/healthz"); return status == http.StatusOK })
	if status, body := get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("ready: %d %v", status, body)
	}
	for _, path := range []string{"/metrics", "/v1/streams", "/v1/subscriptions", "/v1/cluster"} {
		if status, body := get(path); status == 0 || status == http.StatusInternalServerError {
			t.Errorf("%s: %d %v", path, status, body)
		}
	}
	cancel()
	if err := <-started; err == nil {
		t.Error("it started without a cluster")
	}
}
