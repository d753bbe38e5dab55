package admin

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"felix.dev/felix/broker/metrics"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.Egress.LogReads.Add(42)
	h := newHouse(t, func(c *Config) { c.Gatherer = reg })
	status, header, body := h.request("GET", "/metrics", "", "")
	if status != 200 || !strings.Contains(body, "\nfelix_egress_log_reads_total 42\n") {
		t.Errorf("got %d %s", status, body)
	}
	if got := header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		t.Errorf("got %q", got)
	}
}
