package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// report is what a run prints as JSON. Rates and CPU are of the measured part;
// what is counted in records is of the whole run, warm-up included.
type report struct {
	Scenario  string    `json:"scenario"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	ElapsedS  float64   `json:"elapsed_s"`

	// MsgsPerS counts deliveries to healthy subscribers; in scenario publish,
	// acknowledged publishes. Published counts records handed over.
	MsgsPerS     float64 `json:"msgs_per_s"`
	MBPerS       float64 `json:"mb_per_s"`
	PublishedPer float64 `json:"published_per_s"`

	// Latency from when a record was due; in scenario publish, until its answer.
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	P999   float64 `json:"p999_us"`
	Max    float64 `json:"max_us"`
	Timed  int64   `json:"timed"`
	Sent50 float64 `json:"p50_from_send_us"` // the same from when it was really sent
	Sent99 float64 `json:"p99_from_send_us"`

	Published   int64 `json:"published"`
	Expected    int64 `json:"expected"`
	Delivered   int64 `json:"delivered"`
	Dropped     int64 `json:"dropped"`
	Lagged      int64 `json:"lagged"`
	Lost        int64 `json:"lost"`
	Unaccounted int64 `json:"unaccounted"`
	Repeated    int64 `json:"repeated"`
	Disordered  int64 `json:"disordered"`
	Damaged     int64 `json:"damaged"`
	Foreign     int64 `json:"foreign"`
	Refused     int64 `json:"refused"` // publishes that were told to come again
	Expired     int64 `json:"expired"` // acknowledged and, on a memory stream, no longer kept when read back

	ClientCPU     float64  `json:"client_cpu_s"`
	BrokerCPU     *float64 `json:"broker_cpu_s,omitempty"`
	BrokerCPUPerM *float64 `json:"broker_cpu_s_per_mdeliveries,omitempty"`
	// BrokerRSS is at the end of the measured part; idle is before the load, with
	// all subscriptions open.
	BrokerRSS     *int64 `json:"broker_rss_bytes,omitempty"`
	BrokerRSSIdle *int64 `json:"broker_rss_idle_bytes,omitempty"`
	BrokerRSSPeak *int64 `json:"broker_rss_peak_bytes,omitempty"`
	GSO           *bool  `json:"gso,omitempty"`
	GRO           *bool  `json:"gro,omitempty"`

	// Broker is the broker process in the measured part.
	Broker *brokerReport `json:"broker,omitempty"`

	Slow    *slowReport `json:"slow,omitempty"`
	Stalled *account    `json:"stalled_readers,omitempty"`
	Idle    *idleReport `json:"idle,omitempty"`

	Cluster     *clusterReport     `json:"cluster,omitempty"`
	IdleCluster *idleClusterReport `json:"idle_cluster,omitempty"`

	Params  params  `json:"params"`
	Machine machine `json:"machine"`

	p50Series, p99Series []float64
}

// brokerReport is what a broker process has used per delivery, and what it held.
type brokerReport struct {
	Goroutines int     `json:"goroutines"`
	PeakRSS    int64   `json:"-"`
	Heap       uint64  `json:"heap_bytes"`
	Stacks     uint64  `json:"stack_bytes"`
	Mallocs    float64 `json:"mallocs_per_delivery"`
	Switches   float64 `json:"switches_per_delivery"`
	GCs        uint32  `json:"gcs"`
}

// machine is where a report is from.
type machine struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	CPUs  int    `json:"cpus"`
	Procs int    `json:"procs"` // GOMAXPROCS of the load
	Go    string `json:"go"`
}

func thisMachine() machine {
	return machine{runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.GOMAXPROCS(0), runtime.Version()}
}

// newReport works out what was measured. The session has been closed, or is idle.
func newReport(s *session, m measured) *report {
	sec := m.elapsed.Seconds()
	r := &report{
		Scenario:     s.p.Scenario,
		ElapsedS:     sec,
		MsgsPerS:     float64(m.delivered) / sec,
		MBPerS:       float64(m.delivered) * float64(s.p.Size) / sec / 1e6,
		PublishedPer: float64(m.published) / sec,
		Published:    s.published(),
		ClientCPU:    m.clientCPU,
	}
	due, sent := s.clock.summary()
	r.P50, r.P99, r.P999, r.Max, r.Timed = due.P50, due.P99, due.P999, due.Max, due.Count
	r.Sent50, r.Sent99 = sent.P50, sent.P99
	r.p50Series, r.p99Series = s.clock.series()
	if m.idle != nil {
		r.BrokerRSSIdle = &m.idle.RSS
	}
	if m.begin != nil && m.end != nil {
		n := float64(max(m.delivered, 1))
		cpu := m.end.CPU - m.begin.CPU
		perM := cpu / n * 1e6
		r.BrokerCPU, r.BrokerCPUPerM = &cpu, &perM
		r.BrokerRSS, r.BrokerRSSPeak = &m.end.RSS, &m.end.PeakRSS
		r.Broker = &brokerReport{
			Goroutines: m.end.Goroutines, PeakRSS: m.end.PeakRSS, Heap: m.end.Heap, Stacks: m.end.Stacks,
			Mallocs:  float64(m.end.Mallocs-m.begin.Mallocs) / n,
			Switches: float64(m.end.Switches-m.begin.Switches) / n,
			GCs:      m.end.GCs - m.begin.GCs,
		}
	}
	return r
}

func (r *report) count(a account) {
	r.Expected, r.Delivered, r.Dropped, r.Lagged, r.Lost = a.Expected, a.Delivered, a.Dropped, a.Lagged, a.Lost
	r.Unaccounted, r.Repeated, r.Disordered = a.Unaccounted, a.Repeated, a.Disordered
	r.Damaged, r.Foreign = a.Damaged, a.Foreign
}

// writeJSON writes the report as one line, to a file or with "-" to out.
func (r *report) writeJSON(name string, out io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("bench: report: %w", err)
	}
	b = append(b, '\n')
	if name == "-" {
		_, err = out.Write(b)
	} else {
		err = os.WriteFile(name, b, 0o644) //nolint:gosec // a report is for everybody
	}
	if err != nil {
		return fmt.Errorf("bench: report: %w", err)
	}
	return nil
}
