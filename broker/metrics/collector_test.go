package metrics

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

type fakeSource struct {
	state   State
	streams []StreamState
	subs    []SubscriptionState
}

func (f *fakeSource) State() State { return f.state }

func (f *fakeSource) Streams(yield func(StreamState) bool) {
	for _, s := range f.streams {
		if !yield(s) {
			return
		}
	}
}

func (f *fakeSource) Subscriptions(yield func(SubscriptionState) bool) {
	for _, s := range f.subs {
		if !yield(s) {
			return
		}
	}
}

func newRegistry(t *testing.T, src Source, cfg CollectorConfig) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Collect(src, cfg); err != nil {
		t.Fatal(err)
	}
	return reg
}

// gather returns the samples of the named metrics, as "name{label=value} 1".
func gather(t *testing.T, reg *prometheus.Registry, names ...string) []string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
				out = append(out, fmt.Sprintf("%s{%s} %v", name, strings.Join(labels, ","), v))
			}
		}
	}
	return out
}

func TestScrape(t *testing.T) {
	src := &fakeSource{
		state: State{
			Ready: true, Connections: 3, StreamsOpen: 7, IngressBytes: 100,
			Egress:            EgressTotals{Bytes: 50, Records: 4, Writes: 3, Wakeups: 2},
			CertificateExpiry: time.Unix(1_800_000_000, 0),
			WAL:               WALState{Bytes: 900, Commits: 11, Appends: 12, Poisoned: true},
		},
		streams: []StreamState{
			{Stream: "t/n/a", LogBytes: 10, TailBytes: 1, Records: 5, DroppedRecords: 2},
			{Stream: "t/n/b", LogBytes: 20, TailBytes: 2, Problems: []Problem{ProblemFull, ProblemFull, ProblemDamaged}},
		},
		subs: []SubscriptionState{
			{ID: 1, Stream: "t/n/a", State: "live"},
			{ID: 2, Stream: "t/n/a", State: "behind", LagRecords: 40},
			{ID: 3, Stream: "t/n/b", State: "blocked", LagRecords: 2},
			{ID: 4, Stream: "t/n/gone", State: "surprise", LagRecords: 1},
		},
	}
	reg := newRegistry(t, src, CollectorConfig{})
	got := gather(t, reg,
		"felix_ready", "felix_connections", "felix_streams_open", "felix_ingress_bytes",
		"felix_egress_bytes_total", "felix_egress_records_total", "felix_egress_writes_total", "felix_egress_wakeups_total",
		"felix_certificate_expiry_timestamp_seconds", "felix_shard_problems",
		"felix_tail_bytes", "felix_streams", "felix_subscriptions", "felix_subscription_lag_records",
		"felix_stream_subscriptions", "felix_stream_lag_records", "felix_stream_lag_records_max",
		"felix_stream_records_total", "felix_subscription_dropped_records_total", "felix_log_bytes",
		"felix_wal_bytes", "felix_wal_commits_total", "felix_wal_appends_total", "felix_wal_poisoned")
	want := []string{
		"felix_ready{} 1", "felix_connections{} 3", "felix_streams_open{} 7", "felix_ingress_bytes{} 100",
		"felix_egress_bytes_total{} 50", "felix_egress_records_total{} 4", "felix_egress_writes_total{} 3", "felix_egress_wakeups_total{} 2",
		"felix_certificate_expiry_timestamp_seconds{} 1.8e+09",
		"felix_shard_problems{problem=damaged} 1", "felix_shard_problems{problem=disk_full} 2", "felix_shard_problems{problem=poisoned} 0",
		"felix_shard_problems{problem=read_only} 0", "felix_shard_problems{problem=unavailable} 0", "felix_shard_problems{problem=write} 0",
		"felix_tail_bytes{} 3", "felix_streams{} 2",
		"felix_subscriptions{state=behind} 1", "felix_subscriptions{state=blocked} 1",
		"felix_subscriptions{state=live} 1", "felix_subscriptions{state=other} 1", "felix_subscriptions{state=waiting} 0",
		"felix_subscription_lag_records{stream=t/n/a,subscription=2} 40",
		"felix_subscription_lag_records{stream=t/n/b,subscription=3} 2",
		"felix_subscription_lag_records{stream=t/n/gone,subscription=4} 1",
		"felix_stream_subscriptions{stream=t/n/a} 2", "felix_stream_subscriptions{stream=t/n/b} 1",
		"felix_stream_lag_records{stream=t/n/a} 40", "felix_stream_lag_records{stream=t/n/b} 2",
		"felix_stream_lag_records_max{stream=t/n/a} 40", "felix_stream_lag_records_max{stream=t/n/b} 2",
		"felix_stream_records_total{stream=t/n/a} 5", "felix_stream_records_total{stream=t/n/b} 0",
		"felix_subscription_dropped_records_total{stream=t/n/a} 2", "felix_subscription_dropped_records_total{stream=t/n/b} 0",
		"felix_log_bytes{stream=t/n/a} 10", "felix_log_bytes{stream=t/n/b} 20",
		"felix_wal_bytes{} 900", "felix_wal_commits_total{} 11", "felix_wal_appends_total{} 12", "felix_wal_poisoned{} 1",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// B04: the metrics name the subscription that is slow. B05, B10: what is gone
// leaves nothing behind, and no gauge is counted down, so none can be negative.
func TestSubscriptionGaugesFollowTheRegistry(t *testing.T) {
	src := &fakeSource{streams: []StreamState{{Stream: "t/n/s"}}}
	reg := newRegistry(t, src, CollectorConfig{})
	names := []string{"felix_subscriptions", "felix_subscription_lag_records", "felix_stream_subscriptions", "felix_stream_lag_records_max"}
	before := gather(t, reg, names...)
	for i := range uint64(1000) {
		src.subs = append(src.subs, SubscriptionState{ID: i, Stream: "t/n/s", State: "blocked", LagRecords: i})
	}
	during := gather(t, reg, names...)
	if !strings.Contains(strings.Join(during, "\n"), "felix_subscription_lag_records{stream=t/n/s,subscription=999} 999") {
		t.Errorf("the slowest is not named:\n%s", strings.Join(during, "\n"))
	}
	src.subs = nil
	if diff := cmp.Diff(gather(t, reg, names...), before); diff != "" {
		t.Errorf("something is left (-got +want):\n%s", diff)
	}
}

func TestSubscriptionSeriesAreBounded(t *testing.T) {
	src := &fakeSource{streams: []StreamState{{Stream: "t/n/s"}}}
	for i := range uint64(1000) {
		src.subs = append(src.subs, SubscriptionState{ID: i, Stream: "t/n/s", State: "live", LagRecords: (i * 37) % 1000})
	}
	for limit, want := range map[int]int{0: 20, 3: 3, -1: 0} {
		reg := newRegistry(t, src, CollectorConfig{MaxSubscriptions: limit})
		if got := len(gather(t, reg, "felix_subscription_lag_records")); got != want {
			t.Errorf("limit %d: got %d series, want %d", limit, got, want)
		}
	}
}

func TestSubscriptionsThatKeepUpHaveNoSeries(t *testing.T) {
	src := &fakeSource{
		streams: []StreamState{{Stream: "t/n/s"}},
		subs:    []SubscriptionState{{ID: 1, Stream: "t/n/s", State: "live"}},
	}
	if got := gather(t, newRegistry(t, src, CollectorConfig{}), "felix_subscription_lag_records"); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestBadLabelCostsOneLine(t *testing.T) {
	src := &fakeSource{streams: []StreamState{{Stream: "t/n/\xff"}}}
	reg := newRegistry(t, src, CollectorConfig{})
	families, err := reg.Gather()
	if err == nil {
		t.Error("not reported")
	}
	if len(families) < 10 {
		t.Errorf("got %d families", len(families))
	}
}

func TestCollectorConfigValidate(t *testing.T) {
	if err := (CollectorConfig{}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (CollectorConfig{MaxSubscriptions: 1001, MaxStreams: 10_001}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("got %v, want 2 problems", err)
	}
}

func TestScrapesInParallel(t *testing.T) {
	src := &fakeSource{streams: []StreamState{{Stream: "t/n/s", Records: 1}}, subs: []SubscriptionState{{ID: 1, Stream: "t/n/s", LagRecords: 1}}}
	reg := newRegistry(t, src, CollectorConfig{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := reg.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestPrometheusLint(t *testing.T) {
	src := &fakeSource{streams: []StreamState{{Stream: "t/n/s"}}}
	problems, err := testutil.GatherAndLint(newRegistry(t, src, CollectorConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
