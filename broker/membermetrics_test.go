package broker

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// metric is one series of a broker, 0 if it has none: `name` or `name{label}` with the
// value of its only label.
func (b *memberBroker) metric(series string) float64 {
	b.c.t.Helper()
	name, label, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	families, err := b.cfg.Registry.Gather()
	if err != nil {
		b.c.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			switch {
			case label != "" && m.GetLabel()[0].GetValue() != label:
			case m.Histogram != nil:
				return float64(m.Histogram.GetSampleCount())
			case m.Counter != nil:
				return m.Counter.GetValue()
			default:
				return m.Gauge.GetValue()
			}
		}
	}
	return 0
}

// The metrics of a cluster say who leads, what was proposed and forwarded, and why
// readers had to go elsewhere.
func TestClusterMetricsTellTheTruth(t *testing.T) {
	c := newTestCluster(t)
	counted := func(cfg *Config) { cfg.Registry = prometheus.NewRegistry() }
	all := []*memberBroker{c.add("a", counted).start(), c.add("b", counted).start(), c.add("z", counted).start()}
	c.settled(3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testWait)
	defer cancel()
	sum := func(series string) (total float64) {
		for _, b := range all {
			total += b.metric(series)
		}
		return total
	}
	groups := float64(clusterTimes.Groups + 1)
	eventually(t, "every group has one leader and two followers", func() bool {
		return sum("felix_group_replicas{leader}") == groups && sum("felix_group_replicas{follower}") == 2*groups &&
			sum("felix_cluster_brokers{up}") == 9 && sum("felix_groups_without_leader") == 0
	})
	if _, _, err := all[0].broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named("s"), Durability: "Quorum"}, ""); err != nil {
		t.Fatal(err)
	}
	committed, stored := sum("felix_quorum_proposals_total{committed}"), sum("felix_quorum_store_seconds")
	for _, b := range all {
		if _, err := b.client().Publish(ctx, streamOf("s"), client.Message{Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if n := sum("felix_quorum_proposals_total{committed}") - committed; n < 3 {
		t.Errorf("%v proposals for 3 publishes that waited for each other", n)
	}
	if n := sum("felix_quorum_store_seconds") - stored; n < 6 {
		t.Errorf("%v writes of entries for 3 publishes on a majority of 3", n)
	}
	if n := sum("felix_forwarded_publishes_total{written}"); n != 2 {
		t.Errorf("%v publishes were forwarded, 2 of the brokers do not lead", n)
	}
	e, err := all[0].broker.member.cluster.State().Get(named("s").CatalogName())
	if err != nil {
		t.Fatal(err)
	}
	group := e.Places[0].Group
	from, _, _ := all[0].broker.member.cluster.Leader(group)
	to := "a"
	if from == to {
		to = "b"
	}
	sub, err := c.brokers[from].client().Subscribe(ctx, streamOf("s"), client.SubscribeConfig{Start: client.Latest()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	if err := all[0].broker.member.cluster.TransferLeader(ctx, group, to); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reader was told to go elsewhere", func() bool {
		return c.brokers[from].metric("felix_subscriptions_ended_total{moved}")+c.brokers[from].metric("felix_subscriptions_ended_total{deposed}") == 1
	})
	if c.brokers[to].metric("felix_quorum_leaderships_total") == 0 {
		t.Error("a leadership that began is not counted")
	}
}
