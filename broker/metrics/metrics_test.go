package metrics

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/wire"
)

func TestNewTwiceInOneRegistryIsAnError(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := New(reg); err != nil {
		t.Fatal(err)
	}
	if _, err := New(reg); err == nil || !strings.Contains(err.Error(), "metrics: register") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutRegistry(t *testing.T) {
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Collect(&fakeSource{}, CollectorConfig{}); err != nil {
		t.Fatal(err)
	}
	m.Publish.Bytes.Add(7)
	if got := testutil.ToFloat64(m.Publish.Bytes); got != 7 {
		t.Errorf("got %v", got)
	}
}

func TestCountersOutsideTheSetAreOther(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.Publish.Shed.With(ShedShardQueue).Inc()
	if got := gather(t, reg, "felix_publish_shed_total"); len(got) != 4 {
		t.Errorf("a series that nothing has moved is exported: %q", got)
	}
	m.Publish.Shed.With("never heard of").Inc()
	m.Publish.Shed.With("nor of this").Inc()
	got := gather(t, reg, "felix_publish_shed_total")
	want := []string{
		"felix_publish_shed_total{reason=connection_bytes} 0", "felix_publish_shed_total{reason=other} 2",
		"felix_publish_shed_total{reason=process_bytes} 0", "felix_publish_shed_total{reason=readers} 0",
		"felix_publish_shed_total{reason=shard_queue} 1",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestSetBuildReplaces(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.SetBuild("1", "a", "go1")
	m.SetBuild("2", "b", "go1")
	if diff := cmp.Diff(gather(t, reg, "felix_build_info"), []string{"felix_build_info{go_version=go1,revision=b,version=2} 1"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// The label sets name what other packages name: they must not drift apart. That all
// of them can happen is held by the test of the whole broker.
func TestLabelSetsAreComplete(t *testing.T) {
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range auth.Reasons() {
		if _, ok := m.Sessions.Auth.byValue[AuthResult(r)]; !ok {
			t.Errorf("auth reason %q has no counter", r)
		}
	}
	if got, want := len(m.Sessions.Auth.byValue), len(auth.Reasons())+1; got != want {
		t.Errorf("got %d auth results, want %d", got, want)
	}
	codes := map[PublishResult]bool{PublishOK: true, PublishRefused: true}
	for c := wire.CodeUnauthenticated; c <= wire.CodeStaleClaim; c++ {
		codes[PublishResult(c.String())] = true
	}
	for r := range m.Publish.Requests.byValue {
		if !codes[r] {
			t.Errorf("publish result %q is no error code", r)
		}
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		m.Publish.Requests.With(PublishOK).Inc()
		m.Publish.Bytes.Add(1)
		m.Publish.Ack.Observe(0.001)
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
