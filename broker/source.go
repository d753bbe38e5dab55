package broker

import (
	"errors"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/wal"
)

// source is what a scrape reads.
type source struct{ b *Broker }

// State implements metrics.Source.
func (s source) State() metrics.State {
	server, egress := s.b.server.Stats(), s.b.engine.Stats()
	st := metrics.State{
		Ready: s.b.ready(), Connections: server.Connections, StreamsOpen: server.Streams, IngressBytes: server.IngressBytes,
		Egress: metrics.EgressTotals{
			Bytes: egress.Bytes, Records: egress.Records, Writes: egress.Writes, Wakeups: egress.Wakeups,
		},
		CertificateExpiry: s.b.cert.NotAfter(),
	}
	if s.b.wal != nil {
		w := s.b.wal.Stats()
		st.WAL = metrics.WALState{Bytes: w.Bytes, Commits: w.Commits, Appends: w.Appends, Poisoned: errors.Is(w.Err, wal.ErrPoisoned)}
	}
	return st
}

// Streams implements metrics.Source.
func (s source) Streams(yield func(metrics.StreamState) bool) {
	for _, v := range s.b.streams.all() {
		n := v.counted()
		st := metrics.StreamState{
			Stream: v.entry.Spec.Name.String(), Records: n.records, DroppedRecords: n.dropped,
		}
		if v.problem != nil {
			for range v.entry.Spec.Shards {
				st.Problems = append(st.Problems, v.problem.kind)
			}
		}
		for _, k := range v.here() {
			info := k.Info()
			st.LogBytes += info.LogBytes
			st.TailBytes += info.TailBytes
			if p := k.problem(&info); p != nil {
				st.Problems = append(st.Problems, p.kind)
			}
		}
		if !yield(st) {
			return
		}
	}
}

// Subscriptions implements metrics.Source.
func (s source) Subscriptions(yield func(metrics.SubscriptionState) bool) {
	for _, v := range s.b.streams.all() {
		for _, k := range v.here() {
			for _, i := range k.Subscriptions() {
				if !yield(metrics.SubscriptionState{ID: i.ID, Stream: i.Stream.String(), State: i.State.String(), LagRecords: i.LagRecords}) {
					return
				}
			}
		}
	}
}
