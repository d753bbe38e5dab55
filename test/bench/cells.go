package main

import (
	"fmt"
	"strconv"
	"time"
)

// tool is a program that is run.
type tool string

const (
	felix     tool = "felix"
	quiclimit tool = "quiclimit"
	natsbench tool = "natsbench"
)

// command is one run in a group. Its name is unique there.
type command struct {
	name string
	tool tool
	args []string
	one  bool // GOMAXPROCS=1 for the load as well
}

// group is run together.
type group struct {
	name     string
	commands []command
	// once runs it in the first round only: it repeats by itself what matters.
	once bool
}

// value is a number of a run, or what follows from it.
type value struct {
	command string
	key     string
	// inverse turns seconds for a million into a million for each second.
	inverse bool
}

// relation is how a cell is judged.
type relation uint8

const (
	atLeast relation = iota
	atMost
	// told is not judged.
	told
)

// cell is a line of the table. Without a reference the product's value itself is
// judged.
type cell struct {
	group     string
	name      string
	unit      string
	product   value
	reference *value
	relation  relation
	limit     float64
}

const (
	prod = "felix"
	ring = "quiclimit ring+GRO"
	gor  = "quiclimit gor"
	bulk = "quiclimit bulk"
	nats = "NATS+TLS"
	js   = "JetStream+TLS"
	jsaw = "JetStream+TLS sync_always"
	jsr3 = "JetStream+TLS R3 sync_always"
	// forwarded is the product through a broker that does not lead.
	forwarded = "felix, forwarded"
)

// plan is everything that is run and judged.
type plan struct {
	groups []group
	cells  []cell
}

func (p *plan) group(name string, cs ...command) {
	p.groups = append(p.groups, group{name: name, commands: cs})
}

func (p *plan) compare(group, name, unit string, product, reference value, r relation, limit float64) {
	p.cells = append(p.cells, cell{group, name, unit, product, &reference, r, limit})
}

func (p *plan) judge(group, name, unit string, product value, r relation, limit float64) {
	p.cells = append(p.cells, cell{group, name, unit, product, nil, r, limit})
}

// tell shows the product's value, beside the reference's if there is one.
func (p *plan) tell(group, name, unit string, product value, reference *value) {
	p.cells = append(p.cells, cell{group, name, unit, product, reference, told, 0})
}

// settings are what the plan depends on.
type settings struct {
	duration time.Duration // of a run
	dir      string        // where durable data goes
	idle     int           // subscriptions of the idle cell
	many     int           // subscriptions of the stalled tenth
}

func (s settings) felix(args ...string) command {
	args = append([]string{"bench"}, args...)
	if s.dir != "" {
		args = append(args, "--dir", s.dir)
	}
	return command{name: prod, tool: felix, args: append(args, "--json")}
}

func (s settings) nats(name string, args ...string) command {
	args = append(args, "-tls")
	if s.dir != "" {
		args = append(args, "-dir", s.dir)
	}
	return command{name: name, tool: natsbench, args: args}
}

func (s settings) limit(name string, args ...string) command {
	return command{name: name, tool: quiclimit, args: append(args, "-dur", s.duration.String())}
}

func (c command) withOneProc() command {
	c.one = true
	if c.tool == felix {
		c.args = append(c.args, "--procs", "1")
	} else {
		c.args = append(c.args, "-procs", "1")
	}
	return c
}

func size(n int) string {
	if n >= 1024 {
		return fmt.Sprintf("%d KiB", n/1024)
	}
	return fmt.Sprintf("%d B", n)
}

// newPlan is section 7 of the performance notes.
func newPlan(s settings) *plan {
	p := &plan{}
	s.fanouts(p)
	s.oneProc(p)
	s.jetStream(p)
	s.publishes(p)
	s.ping(p)
	s.stalls(p)
	s.idleCell(p)
	s.quorum(p)
	s.failover(p)
	s.idleCluster(p)
	return p
}

// targets of the comparison with NATS+TLS by size.
var natsTarget = map[int]struct{ normal, oneProc float64 }{
	256:   {normal: 2},
	4096:  {normal: 0.55, oneProc: 0.7},
	65536: {normal: 0.35, oneProc: 0.45},
}

var (
	rate    = func(name string) value { return value{command: name, key: "msgs_per_s"} }
	cpuCost = func(name string) value { return value{command: name, key: "broker_cpu_s_per_mdeliveries"} }
	perCPU  = func(name string) value {
		return value{command: name, key: "broker_cpu_s_per_mdeliveries", inverse: true}
	}
)

func (s settings) fanout(fanout, bytes int, more ...string) command {
	return s.felix(append([]string{
		"fanout", "--fanout", strconv.Itoa(fanout), "--size", strconv.Itoa(bytes),
		"--duration", s.duration.String(), "--warmup", "0s",
	}, more...)...)
}

func (s settings) natsFanout(name string, fanout, bytes int, more ...string) command {
	return s.nats(name, append([]string{
		"-fanout", strconv.Itoa(fanout), "-size", strconv.Itoa(bytes), "-dur", s.duration.String(),
	}, more...)...)
}

func (s settings) fanouts(p *plan) {
	for _, bytes := range []int{256, 4096, 65536} {
		for _, fanout := range []int{10, 100} {
			name := fmt.Sprintf("%d x %s", fanout, size(bytes))
			streams := []string{"-streams", strconv.Itoa(fanout), "-size", strconv.Itoa(bytes)}
			cs := []command{
				s.fanout(fanout, bytes),
				s.limit(ring, append(streams, "-write", "ring", "-gro")...),
				s.natsFanout(nats, fanout, bytes),
			}
			switch {
			case fanout == 10 && bytes == 4096:
				cs = append(
					cs,
					s.limit(gor, append(streams, "-write", "gor", "-queue", "16")...),
					s.limit(bulk, "-streams", "1", "-size", "1048576", "-write", "rr"),
				)
				p.compare(name, "fan-out "+name+", deliveries/s", "1/s", rate(prod), rate(ring), atLeast, 0.75)
				p.compare(name, "fan-out "+name+", deliveries/s", "1/s", rate(prod), rate(gor), atLeast, 1)
				mb := func(name string) value { return value{command: name, key: "mb_per_s"} }
				p.compare(name, "fan-out "+name+", MB/s", "MB/s", mb(prod), mb(bulk), atLeast, 0.65)
			case fanout == 100 && bytes == 256:
				p.compare(name, "fan-out "+name+", deliveries/s", "1/s", rate(prod), rate(ring), atLeast, 0.7)
			}
			p.compare(name, "fan-out "+name+", CPU per million", "s", cpuCost(prod), cpuCost(ring), atMost, 1.3)
			p.compare(name, "fan-out "+name+", deliveries per CPU second", "1/s", perCPU(prod), perCPU(nats), atLeast, natsTarget[bytes].normal)
			p.group(name, cs...)
		}
	}
}

func (s settings) oneProc(p *plan) {
	for _, bytes := range []int{4096, 65536} {
		for _, fanout := range []int{10, 100} {
			name := fmt.Sprintf("%d x %s, GOMAXPROCS=1", fanout, size(bytes))
			p.group(name, s.fanout(fanout, bytes).withOneProc(), s.natsFanout(nats, fanout, bytes).withOneProc())
			p.compare(name, "fan-out "+name+", deliveries per CPU second", "1/s", perCPU(prod), perCPU(nats), atLeast, natsTarget[bytes].oneProc)
		}
	}
}

func (s settings) jetStream(p *plan) {
	for _, c := range []struct {
		bytes int
		limit float64
	}{{256, 6}, {4096, 2}, {65536, 1.3}} {
		name := fmt.Sprintf("10 x %s, durable", size(c.bytes))
		p.group(name,
			s.fanout(10, c.bytes, "--durability", "durable"),
			s.natsFanout(js, 10, c.bytes, "-durable", "js"))
		p.compare(name, "fan-out "+name+", deliveries per CPU second", "1/s", perCPU(prod), perCPU(js), atLeast, c.limit)
	}
}

func (s settings) publishes(p *plan) {
	for _, c := range []struct {
		name       string
		publishers int
		fsync      string
		reference  string
		durable    string
		limit      float64
	}{
		{"acked durable publish, 64 publishers x 256 B", 64, "always", jsaw, "js-always", 8},
		{"acked durable publish, 1 publisher x 256 B", 1, "always", jsaw, "js-always", 0.8},
		{"acked publish without fsync, 64 publishers x 256 B", 64, "interval", js, "js", 1.5},
	} {
		n := strconv.Itoa(c.publishers)
		p.group(c.name,
			s.felix("publish", "--size", "256", "--publishers", n, "--inflight", "1",
				"--durability", "durable", "--fsync", c.fsync, "--duration", s.duration.String(), "--warmup", "0s"),
			s.nats(c.reference, "-mode", "pub", "-size", "256", "-inflight", n, "-durable", c.durable, "-dur", s.duration.String()))
		p.compare(c.name, c.name, "1/s", rate(prod), rate(c.reference), atLeast, c.limit)
	}
}

func (s settings) ping(p *plan) {
	const name = "ping 500/s, 256 B"
	const perSecond = 500
	count := int(2 * s.duration.Seconds() * perSecond)
	p.group(name,
		s.felix("latency", "--size", "256", "--rate", strconv.Itoa(perSecond), "--duration", (2*s.duration).String(), "--warmup", "0s"),
		s.nats(nats, "-mode", "lat", "-size", "256", "-rate", strconv.Itoa(perSecond), "-count", strconv.Itoa(count)))
	for _, q := range []string{"p50", "p99"} {
		// The reference counts from when a message was really sent.
		p.compare(name, name+", "+q, "us", value{command: prod, key: q + "_from_send_us"}, value{command: nats, key: q + "_us"}, atMost, 1.25)
	}
}

func (s settings) stalls(p *plan) {
	for _, k := range []int{1, 3, 5} {
		name := fmt.Sprintf("%d of 10 readers stalled, 4 KiB", k)
		p.group(name, s.felix("slow", "--fanout", "10", "--stalled", strconv.Itoa(k), "--size", "4096",
			"--window", strconv.Itoa(4<<20), "--duration", (2*s.duration).String(), "--warmup", "500ms"))
		p.judge(name, name+": rate of the others kept", "", value{command: prod, key: "slow.healthy_rate_kept"}, atLeast, 0.9)
	}
	name := fmt.Sprintf("%d of %d readers stalled, 4 KiB", s.many/10, s.many)
	p.group(name, s.felix("slow", "--fanout", strconv.Itoa(s.many), "--stalled", strconv.Itoa(s.many/10), "--size", "4096",
		"--duration", s.duration.String(), "--volume", strconv.Itoa(1<<20)))
	p.judge(name, name+": rate of the others kept", "", value{command: prod, key: "slow.healthy_rate_kept"}, atLeast, 0.9)
	p.judge(name, name+": lost by the others", "records", value{command: prod, key: "missing"}, atMost, 0)
	p.judge(name, name+": peak RSS, difference", "bytes", value{command: prod, key: "slow.broker_rss_difference_bytes"}, atMost, 64<<20)
}

func (s settings) idleCell(p *plan) {
	name := fmt.Sprintf("%d idle subscriptions", s.idle)
	p.group(name, s.felix("idle", "--fanout", strconv.Itoa(s.idle)))
	p.judge(name, name+", broker RSS each", "bytes", value{command: prod, key: "idle.broker_rss_bytes_per_subscription"}, atMost, 8<<10)
}
