package bench

import (
	"fmt"
	"io"
	"time"
)

// writeSummary prints a report for a person.
func (r *report) writeSummary(w io.Writer) {
	p := &r.Params
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "%s: %s\n", r.Scenario, p.describe())
	if i := r.IdleCluster; i != nil {
		i.summarize(line)
	} else if i := r.Idle; i != nil {
		line("broker", "%d subscriptions: RSS %s -> %s, %.1f KiB and %.2f goroutines each",
			i.Subscriptions, mib(i.Before), mib(i.After), i.Each/1024, i.Goroutines)
		line("", "%.1f KiB once free memory is given back; %.1f KiB of heap and %.1f KiB of stacks in use",
			i.Trimmed/1024, i.Heap/1024, i.Stacks/1024)
	} else {
		what := "deliveries"
		if r.Scenario == scenarioPublish {
			what = "acknowledged"
		}
		line("rate", "%s %s/s, %.1f MB/s; %s published/s; in %.2f s", short(r.MsgsPerS), what, r.MBPerS, short(r.PublishedPer), r.ElapsedS)
		line("latency", "p50 %s  p99 %s  p99.9 %s  max %s  (%d timed)", micros(r.P50), micros(r.P99), micros(r.P999), micros(r.Max), r.Timed)
		r.summarizeCPU(line)
	}
	if c := r.Cluster; c != nil {
		c.summarize(line, r)
	}
	if s := r.Slow; s != nil {
		line("healthy", "%d readers beside %d stalled: %s msgs/s each", s.Healthy, s.Stalled, short(s.PerReader))
		if s.Kept != nil {
			line("", "%.1f %% of the rate without stalled readers", *s.Kept*100)
		}
		if s.RSSDifference != nil {
			line("", "peak RSS %+.1f MiB against the run without", float64(*s.RSSDifference)/(1<<20))
		}
	}
	if a := r.Stalled; a != nil {
		line("stalled", "woken afterwards: %d of %d delivered, %d reported as dropped, %d unaccounted; %d lagged, %d lost",
			a.Delivered, a.Expected, a.Dropped, a.Unaccounted, a.Lagged, a.Lost)
	}
	line("account", "%d of %d delivered, %d dropped, %d lagged, %d lost, %d unaccounted",
		r.Delivered, r.Expected, r.Dropped, r.Lagged, r.Lost, r.Unaccounted)
	if r.Refused > 0 || r.Expired > 0 {
		line("", "%d refused for now and sent again, %d no longer kept when read back", r.Refused, r.Expired)
	}
}

func (r *report) summarizeCPU(line func(name, format string, args ...any)) {
	if r.BrokerCPU != nil {
		line("broker", "%.2f s of CPU per million, %.2f cores; RSS %s (idle %s, peak %s); GSO %s, GRO %s",
			*r.BrokerCPUPerM, *r.BrokerCPU/r.ElapsedS, mib(*r.BrokerRSS), mib(*r.BrokerRSSIdle), mib(*r.BrokerRSSPeak), onOff(r.GSO), onOff(r.GRO))
	}
	if b := r.Broker; b != nil && b.Mallocs > 0 {
		line("", "%.2f context switches and %.2f allocations for each", b.Switches, b.Mallocs)
	}
	line("load", "%.2f cores", r.ClientCPU/r.ElapsedS)
}

// describe says in short what was run.
func (p *params) describe() string {
	s := fmt.Sprintf("%d B, %s", p.Size, p.Durability)
	if p.Durability == durabilityDurable {
		s += " (fsync " + p.Fsync + ")"
	}
	if p.Durability == durabilityQuorum {
		s += fmt.Sprintf(" (%d brokers, through the %s)", p.Brokers, p.Through)
	}
	if p.Streams > 1 {
		s += fmt.Sprintf(", %d streams", p.Streams)
	}
	switch p.Scenario {
	case scenarioIdleCluster:
	case scenarioPublish:
		s += fmt.Sprintf(", %d publishers with %d in flight", p.Publishers, p.Inflight)
	case scenarioLatency:
		if p.Rate > 0 {
			s += fmt.Sprintf(", %d/s", p.Rate)
		} else {
			s += fmt.Sprintf(", %d in flight", p.Inflight)
		}
		fallthrough
	default:
		s += fmt.Sprintf(", fan-out %d", p.Fanout)
	}
	return s
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func micros(us float64) string {
	return time.Duration(us * float64(time.Microsecond)).String()
}

func onOff(v *bool) string {
	switch {
	case v == nil:
		return "unknown"
	case *v:
		return "on"
	}
	return "off"
}
