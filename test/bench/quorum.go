package main

import (
	"fmt"
	"strconv"
)

// quorum is acknowledged publishes to a stream that three broker processes keep, through the one that leads and through
// another one, beside JetStream's replicated stream with three servers.
func (s settings) quorum(p *plan) {
	for _, bytes := range []int{256, 4096} {
		for _, n := range []int{1, 64, 512} {
			name := fmt.Sprintf("quorum, %d in flight x %s", n, size(bytes))
			run := func(name, through string) command {
				c := s.felix("publish", "--durability", "quorum", "--through", through, "--size", strconv.Itoa(bytes),
					"--publishers", strconv.Itoa(n), "--duration", s.duration.String(), "--warmup", "500ms")
				c.name = name
				return c
			}
			p.group(name,
				run(prod, "leader"),
				s.nats(jsr3, "-mode", "pub", "-size", strconv.Itoa(bytes), "-inflight", strconv.Itoa(n),
					"-durable", "js-always", "-replicas", "3", "-dur", s.duration.String()),
				run(forwarded, "follower"))
			reference := func(key string) *value { return &value{command: jsr3, key: key} }
			if n == 64 && bytes == 256 {
				p.compare(name, name+", acked/s", "1/s", rate(prod), rate(jsr3), atLeast, 3)
			} else {
				p.tell(name, name+", acked/s", "1/s", rate(prod), reference("msgs_per_s"))
			}
			for _, q := range []string{"p50", "p99"} {
				p.tell(name, name+", "+q, "us", value{command: prod, key: q + "_us"}, reference(q+"_us"))
			}
			if n == 1 && bytes == 256 {
				p.judge(name, name+", p50 in data syncs of the disk at rest", "", value{command: prod, key: "cluster.p50_per_disk_sync"}, atMost, 4.5)
				p.tell(name, "data sync of the disk at rest, p50", "us", value{command: prod, key: "cluster.disk_sync_p50_us"}, nil)
			}
			p.tell(name, name+", CPU of the brokers per million", "s", cpuCost(prod), reference("broker_cpu_s_per_mdeliveries"))
			p.tell(name, name+", through a follower, acked/s", "1/s", rate(forwarded), reference("msgs_per_s"))
			for _, q := range []string{"p50", "p99"} {
				p.tell(name, name+", through a follower, "+q, "us", value{command: forwarded, key: q + "_us"}, nil)
			}
		}
	}
}

// failover is how long nothing is acknowledged when the broker that leads is killed.
func (s settings) failover(p *plan) {
	const kills = 10
	name := fmt.Sprintf("failover, %d kills, default timeouts", kills)
	p.groups = append(p.groups, group{name: name, once: true, commands: []command{{
		name: prod, tool: felix, args: []string{"demo", "failover", "--kills", strconv.Itoa(kills), "-o", "json"},
	}}})
	p.judge(name, name+": from the kill to the next acknowledgement, median", "ms", value{command: prod, key: "next_ack_ms.median"}, atMost, 2000)
	for _, q := range []string{"least", "most"} {
		p.tell(name, name+": "+q, "ms", value{command: prod, key: "next_ack_ms." + q}, nil)
	}
	for _, key := range []string{"lost", "repeated"} {
		p.judge(name, name+": "+key, "records", value{command: prod, key: key}, atMost, 0)
	}
}

// idleCluster is what three processes cost that have streams and no traffic.
func (s settings) idleCluster(p *plan) {
	const streams = 1000
	name := fmt.Sprintf("idle cluster, 8 groups, %d quorum streams", streams)
	p.groups = append(p.groups, group{name: name, once: true, commands: []command{
		s.felix("idle-cluster", "--streams", strconv.Itoa(streams)),
	}})
	key := func(k string) value { return value{command: prod, key: "idle_cluster." + k} }
	p.judge(name, name+": CPU of all brokers", "% of a core", key("cpu_percent"), atMost, 5)
	p.judge(name, name+": data syncs", "syncs", key("syncs"), atMost, 0)
	p.tell(name, name+": RSS of all brokers", "bytes", key("rss_bytes"), nil)
	p.tell(name, name+": to make the streams", "s", key("create_s"), nil)
}
