package broker

import (
	"felix.dev/felix/broker/metrics"
)

// source is what a scrape reads. Totals that other packages keep themselves are
// carried into their counters at the same time.
type source struct {
	b *Broker
	// seen is what was carried before; a scrape has the collector's lock.
	seen totals
}

// totals are counters kept by the engine and the logs.
type totals struct {
	bytes, records, writes, wakeups uint64
	appends, syncs, trimmed         uint64
}

// State implements metrics.Source.
func (s *source) State() metrics.State {
	s.carry()
	st := s.b.server.Stats()
	return metrics.State{
		Ready: s.b.ready(), Connections: st.Connections, StreamsOpen: st.Streams, IngressBytes: st.IngressBytes,
	}
}

func (s *source) carry() {
	now := s.b.totals()
	add := func(c interface{ Add(float64) }, now, before uint64) {
		if now > before { // a log that was closed takes its share with it
			c.Add(float64(now - before))
		}
	}
	m := s.b.metrics
	add(m.Egress.Bytes, now.bytes, s.seen.bytes)
	add(m.Egress.Records, now.records, s.seen.records)
	add(m.Egress.Writes, now.writes, s.seen.writes)
	add(m.Egress.Wakeups, now.wakeups, s.seen.wakeups)
	add(m.Publish.Appends, now.appends, s.seen.appends)
	add(m.Log.Syncs, now.syncs, s.seen.syncs)
	add(m.Log.Trimmed, now.trimmed, s.seen.trimmed)
	s.seen = now
}

// Streams implements metrics.Source.
func (s *source) Streams(yield func(metrics.StreamState) bool) {
	for _, v := range s.b.streams.all() {
		st := metrics.StreamState{
			Stream: v.entry.Spec.Name.String(), Records: v.committed(),
			DroppedRecords: s.b.streams.droppedOf(nameOf(v.entry.Spec.Name)).Load(),
		}
		for _, k := range v.shards {
			i := k.Info()
			st.LogBytes += i.LogBytes
			st.TailBytes += i.TailBytes
			for _, sub := range k.Subscriptions() {
				st.DroppedRecords += sub.Dropped
			}
		}
		if !yield(st) {
			return
		}
	}
}

// Subscriptions implements metrics.Source.
func (s *source) Subscriptions(yield func(metrics.SubscriptionState) bool) {
	for _, v := range s.b.streams.all() {
		for _, k := range v.shards {
			for _, i := range k.Subscriptions() {
				if !yield(metrics.SubscriptionState{ID: i.ID, Stream: i.Stream.String(), State: i.State.String(), LagRecords: i.LagRecords}) {
					return
				}
			}
		}
	}
}
