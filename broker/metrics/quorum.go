package metrics

import "github.com/prometheus/client_golang/prometheus"

// ProposalResult is what came of an entry that was proposed to a quorum group.
type ProposalResult string

// Results of proposals.
const (
	ProposalCommitted ProposalResult = "committed"
	ProposalRefused   ProposalResult = "refused" // nothing was appended
	ProposalUnknown   ProposalResult = "unknown" // it may be committed yet
)

// Quorum is updated by the owner of quorum groups.
type Quorum struct {
	Proposals   Counters[ProposalResult]
	Commit      prometheus.Histogram // seconds
	Store       prometheus.Histogram // seconds
	Leaderships prometheus.Counter
	Snapshots   prometheus.Counter
	Installs    prometheus.Counter
}

func newQuorum(b *builder) Quorum {
	return Quorum{
		Proposals: counters(b, "felix_quorum_proposals_total", "Entries proposed to the groups that this broker leads; one carries many publishes.", "result",
			[]ProposalResult{ProposalCommitted, ProposalRefused, ProposalUnknown}),
		Commit:      b.seconds("felix_quorum_commit_seconds", "Time from a proposal to its entry being applied here."),
		Store:       b.seconds("felix_quorum_store_seconds", "Time that entries of a group took to be on disk here."),
		Leaderships: b.counter("felix_quorum_leaderships_total", "Times that this broker began to lead a group; it rises when groups change their leader."),
		Snapshots:   b.counter("felix_quorum_snapshots_total", "Snapshots that groups have taken here."),
		Installs:    b.counter("felix_quorum_installs_total", "Snapshots of a leader that were installed here: the broker was far behind."),
	}
}

// ClusterState is a broker's part in its cluster at the moment of a scrape.
type ClusterState struct {
	// Leading, Following and Learning are the groups that this broker has a replica
	// of, the metadata group included, by what it is in them.
	Leading, Following, Learning int
	Leaderless                   int    // of those: nobody is known to lead them
	Stuck                        int    // of those: their disk or machine does not answer
	Unapplied                    uint64 // entries that are committed and not applied, in the worst group
	BrokersUp, BrokersDown       int
	Draining                     int // of all brokers
}

var (
	replicasDesc   = desc("felix_group_replicas", "Groups that this broker has a replica of, by what it is in them.", "role")
	leaderlessDesc = desc("felix_groups_without_leader", "Groups with a replica here of which nobody is known to lead.")
	stuckDesc      = desc("felix_groups_stuck", "Groups with a replica here whose disk or state machine does not answer.")
	unappliedDesc  = desc("felix_group_unapplied_entries", "Entries that are committed and not applied here, in the group with most of them.")
	brokersDesc    = desc("felix_cluster_brokers", "Brokers of the cluster as this one sees them.", "state")
)

// CollectCluster registers a collector that asks state at each scrape.
func (m *Metrics) CollectCluster(state func() ClusterState) error {
	return register(m.reg, clusterCollector{state})
}

type clusterCollector struct{ state func() ClusterState }

// Describe implements prometheus.Collector.
func (c clusterCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{replicasDesc, leaderlessDesc, stuckDesc, unappliedDesc, brokersDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c clusterCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- constant(d, prometheus.GaugeValue, v, labels)
	}
	s := c.state()
	gauge(replicasDesc, float64(s.Leading), "leader")
	gauge(replicasDesc, float64(s.Following), "follower")
	gauge(replicasDesc, float64(s.Learning), "learner")
	gauge(leaderlessDesc, float64(s.Leaderless))
	gauge(stuckDesc, float64(s.Stuck))
	gauge(unappliedDesc, float64(s.Unapplied))
	gauge(brokersDesc, float64(s.BrokersUp), "up")
	gauge(brokersDesc, float64(s.BrokersDown), "down")
	gauge(brokersDesc, float64(s.Draining), "draining")
}
