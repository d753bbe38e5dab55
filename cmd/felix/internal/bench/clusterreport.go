package bench

import (
	"context"
	"fmt"
	"strings"

	"felix.dev/felix/client"
)

// clusterReport is what a cluster has used, broker by broker, in the measured part.
type clusterReport struct {
	// Leader is of the run's stream, if there is one; Moved says that another broker
	// leads it at the end, so that the run is of neither.
	Leader  string         `json:"leader,omitempty"`
	Moved   bool           `json:"leader_moved"`
	Brokers []memberReport `json:"brokers"`
	// Syncs counts data syncs of logs and segments, of all brokers.
	Syncs float64 `json:"syncs"`
	// SyncTime is what one took on the disk at rest, and P50PerSync the median latency
	// as a multiple of it.
	SyncTime   float64 `json:"disk_sync_p50_us"`
	P50PerSync float64 `json:"p50_per_disk_sync"`
}

type memberReport struct {
	Node  string  `json:"node"`
	CPU   float64 `json:"cpu_s"`
	RSS   int64   `json:"rss_bytes"`
	Syncs float64 `json:"syncs"`
}

// report is made when the run is over, and the cluster still runs.
func (c *cluster) report(ctx context.Context, r *report) *clusterReport {
	out := &clusterReport{Leader: c.leader, SyncTime: float64(c.sync.Nanoseconds()) / 1e3}
	out.Brokers, out.Syncs = c.used()
	if out.SyncTime > 0 {
		out.P50PerSync = r.P50 / out.SyncTime
	}
	out.Moved = c.leader != "" && c.leads(ctx) != c.leader
	return out
}

// leads is the broker that leads the run's stream now, "" if that is not known.
func (c *cluster) leads(ctx context.Context) string {
	all, err := client.Dial(ctx, c.cfg)
	if err != nil {
		return ""
	}
	defer func() { _ = all.Close() }() // it was only asked
	name := c.made[0]
	owners, err := all.ShardOwners(ctx, client.Stream{Namespace: name.Namespace, Name: name.Stream})
	if err != nil || len(owners) != 1 {
		return ""
	}
	return owners[0].NodeID
}

// used is what each broker has used in the measured part, and the data syncs of all.
func (c *cluster) used() (brokers []memberReport, syncs float64) {
	for _, m := range c.members {
		one := memberReport{
			Node: m.node, CPU: m.end.usage.CPU - m.begin.usage.CPU, RSS: m.end.usage.RSS, Syncs: m.end.syncs - m.begin.syncs,
		}
		brokers = append(brokers, one)
		syncs += one.Syncs
	}
	return brokers, syncs
}

// summarize prints it for a person.
func (c *clusterReport) summarize(line func(name, format string, args ...any), r *report) {
	cores := func(cpu float64) string { return fmt.Sprintf("%.2f", cpu/r.ElapsedS) }
	var each []string
	for _, b := range c.Brokers {
		name := b.Node
		if name == c.Leader {
			name += " (leader)"
		}
		each = append(each, fmt.Sprintf("%s %s cores, %.0f data syncs, RSS %s", name, cores(b.CPU), b.Syncs, mib(b.RSS)))
	}
	line("cluster", "%s", strings.Join(each, "; "))
	line("", "a data sync of this disk at rest: p50 %s; the median latency is %.1f of them", micros(c.SyncTime), c.P50PerSync)
	if c.Moved {
		line("", "THE LEADER HAS MOVED during the run")
	}
}
