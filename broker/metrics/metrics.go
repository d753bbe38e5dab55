package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics is what owners of the data path update. All fields are set by New.
type Metrics struct {
	Sessions      Sessions
	Publish       Publish
	Forward       Forward
	Quorum        Quorum
	Replica       Replica
	Egress        Egress
	Subscriptions Subscriptions
	Log           Log
	Network       Network

	reg   prometheus.Registerer
	build *prometheus.GaugeVec
}

// New makes the metrics and registers them. With a nil registerer they count
// but are not served. An error means that a name is taken in this registry.
func New(reg prometheus.Registerer) (*Metrics, error) {
	b := &builder{}
	m := &Metrics{
		Sessions:      newSessions(b),
		Publish:       newPublish(b),
		Forward:       newForward(b),
		Quorum:        newQuorum(b),
		Replica:       newReplica(b),
		Egress:        newEgress(b),
		Subscriptions: newSubscriptions(b),
		Log:           newLog(b),
		Network:       newNetwork(b),
		reg:           reg,
	}
	m.build = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "felix_build_info", Help: "Always 1; the labels say what is running.",
	}, []string{"version", "revision", "go_version"})
	b.add(m.build)
	if err := register(reg, b.all...); err != nil {
		return nil, err
	}
	return m, nil
}

// SetBuild says what is running.
func (m *Metrics) SetBuild(version, revision, goVersion string) {
	m.build.Reset()
	m.build.WithLabelValues(version, revision, goVersion).Set(1)
}

// Collect registers a collector that reads src at each scrape.
func (m *Metrics) Collect(src Source, cfg CollectorConfig) error {
	return register(m.reg, newCollector(src, cfg))
}

func register(reg prometheus.Registerer, all ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	var errs []error
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			errs = append(errs, fmt.Errorf("metrics: register: %w", err))
		}
	}
	return errors.Join(errs...)
}

// builder makes metrics and remembers them for registration.
type builder struct {
	all []prometheus.Collector
}

func (b *builder) add(c prometheus.Collector) { b.all = append(b.all, c) }

func (b *builder) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	b.add(c)
	return c
}

func (b *builder) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	b.add(g)
	return g
}

func (b *builder) seconds(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help,
		// 50 µs to 26 s: from a memory append to a disk that hangs.
		Buckets: prometheus.ExponentialBuckets(50e-6, 2, 20),
	})
	b.add(h)
	return h
}
