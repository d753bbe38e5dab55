package broker

import (
	"errors"
	"time"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/quorum"
)

// quorumHooks count what groups do.
func quorumHooks(m *metrics.Quorum) quorum.Metrics {
	return quorum.Metrics{
		Leadership: func(_ uint32, leading bool) {
			if leading {
				m.Leaderships.Inc()
			}
		},
		Proposed: func(_ uint32, took time.Duration, err error) {
			switch {
			case err == nil:
				m.Proposals.With(metrics.ProposalCommitted).Inc()
				m.Commit.Observe(took.Seconds())
			case errors.Is(err, quorum.ErrOutcomeUnknown):
				m.Proposals.With(metrics.ProposalUnknown).Inc()
			default:
				m.Proposals.With(metrics.ProposalRefused).Inc()
			}
		},
		Stored: func(_ uint32, _, _ int, took time.Duration, err error) {
			if err == nil {
				m.Store.Observe(took.Seconds())
			}
		},
		Snapshot: func(_ uint32, _ time.Duration, err error) {
			if err == nil {
				m.Snapshots.Inc()
			}
		},
		Installed: func(_ uint32, _ time.Duration, err error) {
			if err == nil {
				m.Installs.Inc()
			}
		},
	}
}

// state is what a scrape shows of the cluster.
func (m *member) state() metrics.ClusterState {
	var out metrics.ClusterState
	st := m.cluster.LastStatus()
	for _, b := range st.Brokers {
		if b.Up {
			out.BrokersUp++
		} else {
			out.BrokersDown++
		}
		if b.Draining {
			out.Draining++
		}
	}
	for _, g := range m.cluster.State().Groups() {
		q, here := m.cluster.Group(g.ID)
		if !here {
			continue
		}
		s := q.State()
		switch {
		case s.Leading:
			out.Leading++
		case s.Voter:
			out.Following++
		default:
			out.Learning++
		}
		if !s.LeaderKnown {
			out.Leaderless++
		}
		if s.Stuck != nil {
			out.Stuck++
		}
		out.Unapplied = max(out.Unapplied, s.Commit-min(s.Applied, s.Commit))
	}
	return out
}
