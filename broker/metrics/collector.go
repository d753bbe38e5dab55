package metrics

import (
	"errors"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// CollectorConfig bounds what one scrape exports.
type CollectorConfig struct {
	// MaxSubscriptions is how many subscriptions get a series of their own: those
	// that lag most. 0: 20. Negative: none.
	MaxSubscriptions int
	// MaxStreams is how many streams get series of their own; the rest share the
	// label OtherStreams. 0: 500. Negative: none.
	MaxStreams int
}

// Validate reports every problem of the configuration at once.
func (c CollectorConfig) Validate() error {
	var errs []error
	if c.MaxSubscriptions > 1000 {
		errs = append(errs, errors.New("metrics: more than 1000 subscriptions with series of their own"))
	}
	if c.MaxStreams > 10_000 {
		errs = append(errs, errors.New("metrics: more than 10000 streams with series of their own"))
	}
	return errors.Join(errs...)
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return max(v, 0)
}

var (
	readyDesc       = desc("felix_ready", "1 if the broker is ready to serve.")
	connectionsDesc = desc("felix_connections", "Connections open now.")
	openDesc        = desc("felix_streams_open", "QUIC streams open now, in both directions.")
	ingressDesc     = desc("felix_ingress_bytes", "Bytes of publishes admitted and not yet answered.")
	sentDesc        = desc("felix_egress_bytes_total", "Bytes of event frames accepted by QUIC.")
	sentRecordsDesc = desc("felix_egress_records_total", "Records accepted by QUIC, once for each subscription.")
	writesDesc      = desc("felix_egress_writes_total", "Writes to QUIC streams; bytes per write is what batching gains.")
	wakeupsDesc     = desc("felix_egress_wakeups_total", "Parked feeders woken because their shard moved.")
	expiryDesc      = desc("felix_certificate_expiry_timestamp_seconds", "When the certificate that clients are shown expires, in seconds since the epoch.")
	problemsDesc    = desc("felix_shard_problems", "Shards with a problem that somebody should look at.", "problem")
	tailDesc        = desc("felix_tail_bytes", "Bytes held by the tail rings of all streams.")
	streamsDesc     = desc("felix_streams", "Streams that this broker serves.")
	subsDesc        = desc("felix_subscriptions", "Live subscriptions, by what they are doing.", "state")
	subLagDesc      = desc("felix_subscription_lag_records", "How far a subscription is behind; only those furthest behind.", "stream", "subscription")
	streamSubsDesc  = desc("felix_stream_subscriptions", "Live subscriptions of a stream.", "stream")
	lagSumDesc      = desc("felix_stream_lag_records", "How far the subscriptions of a stream are behind, added up.", "stream")
	lagMaxDesc      = desc("felix_stream_lag_records_max", "How far the slowest subscription of a stream is behind.", "stream")
	recordsDesc     = desc("felix_stream_records_total", "Records committed to a stream.", "stream")
	droppedDesc     = desc("felix_subscription_dropped_records_total", "Records that subscriptions of a stream were not sent because they lagged too far.", "stream")
	logBytesDesc    = desc("felix_log_bytes", "Bytes of a stream's log on disk.", "stream")
	walBytesDesc    = desc("felix_wal_bytes", "Bytes of the write-ahead log that somebody may still need.")
	walCommitsDesc  = desc("felix_wal_commits_total", "Writes to the write-ahead log, each with one data sync for all that waited for it.")
	walAppendsDesc  = desc("felix_wal_appends_total", "What logs and groups handed to the write-ahead log; per commit, what sharing it gains.")
	walPoisonedDesc = desc("felix_wal_poisoned", "1 if a write to the write-ahead log failed: it takes nothing until the broker starts again.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// collector reads a Source at each scrape.
type collector struct {
	src     Source
	maxSubs int

	mu   sync.Mutex  // one scrape at a time
	book *streamBook // guarded by mu
}

func newCollector(src Source, cfg CollectorConfig) *collector {
	return &collector{
		src:     src,
		maxSubs: orDefault(cfg.MaxSubscriptions, 20),
		book:    newStreamBook(orDefault(cfg.MaxStreams, 500)),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		readyDesc, connectionsDesc, openDesc, ingressDesc, tailDesc, streamsDesc, subsDesc,
		sentDesc, sentRecordsDesc, writesDesc, wakeupsDesc, expiryDesc, problemsDesc,
		subLagDesc, streamSubsDesc, lagSumDesc, lagMaxDesc, recordsDesc, droppedDesc, logBytesDesc,
		walBytesDesc, walCommitsDesc, walAppendsDesc, walPoisonedDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()

	var streams []StreamState
	var tail int64
	problems := make(map[Problem]int)
	for _, p := range Problems() {
		problems[p] = 0
	}
	c.src.Streams(func(s StreamState) bool {
		streams = append(streams, s)
		tail += s.TailBytes
		for _, p := range s.Problems {
			problems[p]++
		}
		return true
	})
	series := c.book.scrape(streams)
	slow, states := c.readSubscriptions(series)

	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- constant(d, prometheus.GaugeValue, v, labels)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- constant(d, prometheus.CounterValue, float64(v), labels)
	}
	st := c.src.State()
	gauge(readyDesc, flag(st.Ready))
	gauge(connectionsDesc, float64(st.Connections))
	gauge(openDesc, float64(st.StreamsOpen))
	gauge(ingressDesc, float64(st.IngressBytes))
	counter(sentDesc, st.Egress.Bytes)
	counter(sentRecordsDesc, st.Egress.Records)
	counter(writesDesc, st.Egress.Writes)
	counter(wakeupsDesc, st.Egress.Wakeups)
	if !st.CertificateExpiry.IsZero() {
		gauge(expiryDesc, float64(st.CertificateExpiry.Unix()))
	}
	gauge(walBytesDesc, float64(st.WAL.Bytes))
	counter(walCommitsDesc, st.WAL.Commits)
	counter(walAppendsDesc, st.WAL.Appends)
	gauge(walPoisonedDesc, flag(st.WAL.Poisoned))
	for p, n := range problems {
		gauge(problemsDesc, float64(n), string(p))
	}
	gauge(tailDesc, float64(tail))
	gauge(streamsDesc, float64(len(streams)))
	for state, n := range states {
		gauge(subsDesc, float64(n), state)
	}
	for _, s := range slow {
		gauge(subLagDesc, float64(s.LagRecords), s.Stream, strconv.FormatUint(s.ID, 10))
	}
	for label, s := range series {
		gauge(streamSubsDesc, float64(s.subscriptions), label)
		gauge(lagSumDesc, float64(s.lagSum), label)
		gauge(lagMaxDesc, float64(s.lagMax), label)
		gauge(logBytesDesc, float64(s.logBytes), label)
		counter(recordsDesc, s.records, label)
		counter(droppedDesc, s.dropped, label)
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// constant makes a metric, or one that reports what is wrong with it: a name
// that is no valid label costs that line, not the broker.
func constant(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(d, err)
	}
	return m
}

// readSubscriptions adds the subscriptions to the series of their streams, and
// returns the slowest and how many there are in each state.
func (c *collector) readSubscriptions(series map[string]*streamSeries) ([]SubscriptionState, map[string]int) {
	states := make(map[string]int)
	for _, s := range SubscriptionStates() {
		states[s] = 0
	}
	slow := worst{max: c.maxSubs}
	c.src.Subscriptions(func(s SubscriptionState) bool {
		if _, ok := states[s.State]; ok {
			states[s.State]++
		} else {
			states[other]++
		}
		slow.offer(s)
		of := series[s.Stream]
		if of == nil {
			of = series[OtherStreams]
		}
		if of == nil { // its stream went between the two readings
			return true
		}
		of.subscriptions++
		of.lagSum += s.LagRecords
		of.lagMax = max(of.lagMax, s.LagRecords)
		return true
	})
	return slow.subs, states
}
