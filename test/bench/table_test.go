package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func runs(group, command, key string, values ...float64) []result {
	var rs []result
	for i, v := range values {
		rs = append(rs, result{Round: i, Group: group, Command: command, Metrics: metrics{key: v}})
	}
	return rs
}

func TestJudge(t *testing.T) {
	const key = "msgs_per_s"
	compare := func(r relation, limit float64) cell {
		p := &plan{}
		p.compare("g", "cell", "1/s", rate(prod), rate(nats), r, limit)
		return p.cells[0]
	}
	alone := func(r relation, limit float64) cell {
		p := &plan{}
		p.judge("g", "cell", "1/s", rate(prod), r, limit)
		return p.cells[0]
	}
	product := runs("g", prod, key, 90, 100, 500)
	reference := runs("g", nats, key, 50, 10, 60)
	for _, c := range []struct {
		name    string
		cell    cell
		results []result
		judged  float64
		verdict string
		missing bool
		failed  bool
	}{
		{name: "medians at least", cell: compare(atLeast, 2), results: append(product, reference...), judged: 2, verdict: "met"},
		{name: "missed", cell: compare(atLeast, 2.1), results: append(product, reference...), judged: 2, verdict: "MISSED", failed: true},
		{name: "at most", cell: compare(atMost, 2), results: append(product, reference...), judged: 2, verdict: "met"},
		{name: "too much", cell: compare(atMost, 1.9), results: append(product, reference...), judged: 2, verdict: "MISSED", failed: true},
		{name: "alone", cell: alone(atLeast, 100), results: product, judged: 100, verdict: "met"},
		{name: "no reference", cell: compare(atLeast, 1), results: product, judged: 100, verdict: "no reference", missing: true},
		{
			name: "reference fails", cell: compare(atLeast, 1),
			results: append(runs("g", prod, key, 1), result{Group: "g", Command: nats, Error: "exit status 1"}),
			judged:  1, verdict: "reference failed: exit status 1", missing: true,
		},
		{
			name: "product fails once", cell: compare(atLeast, 1),
			results: append(product, result{Group: "g", Command: prod, Error: "3 records are unaccounted for", Metrics: metrics{key: 9}}),
			verdict: "FAILED: 3 records are unaccounted for", failed: true,
		},
		{name: "key missing", cell: alone(atLeast, 1), results: runs("g", prod, "other", 1), verdict: "FAILED: no msgs_per_s", failed: true},
		{name: "other group", cell: alone(atLeast, 1), results: runs("h", prod, key, 1), verdict: "not run", missing: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judge(c.cell, c.results)
			got := []any{r.judged, r.verdict, r.missing, r.failed}
			if diff := cmp.Diff(got, []any{c.judged, c.verdict, c.missing, c.failed}); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestInverse(t *testing.T) {
	got, failed := samples(runs("g", prod, "broker_cpu_s_per_mdeliveries", 2, 0), "g", perCPU(prod))
	if diff := cmp.Diff(got, []float64{5e5}); diff != "" || len(failed) != 1 {
		t.Errorf("failed %q (-got +want)\n%s", failed, diff)
	}
}

func TestWriteTable(t *testing.T) {
	p := &plan{}
	p.compare("g", "fan-out", "1/s", rate(prod), rate(ring), atLeast, 0.75)
	p.judge("g", "memory", "bytes", value{command: prod, key: "rss"}, atMost, 64<<20)
	p.compare("h", "ping", "us", rate(prod), rate(nats), atMost, 1.25)
	p.tell("g", "all", "1/s", rate(prod), nil)
	results := []result{
		{Group: "g", Command: prod, Metrics: metrics{"msgs_per_s": 40000, "rss": 2 << 20}},
		{Group: "g", Command: prod, Metrics: metrics{"msgs_per_s": 44000, "rss": 4 << 20}},
		{Group: "g", Command: ring, Metrics: metrics{"msgs_per_s": 50000}},
		{Group: "g", Command: ring, Metrics: metrics{"msgs_per_s": 40000}},
		{Group: "h", Command: prod, Metrics: metrics{"msgs_per_s": 300}},
	}
	var rows []row
	for _, c := range p.cells {
		rows = append(rows, judge(c, results))
	}
	var out strings.Builder
	writeTable(&out, header{date: "2026-11-30", version: "v1", machine: "2 CPUs", rounds: 2, duration: "1s"}, rows)
	want := `2026-11-30, felix v1, 2 CPUs. Medians of 2 interleaved runs of 1s; in brackets the rounds' lowest and highest.

| cell | product | reference | ratio | target | verdict |
| --- | --- | --- | --- | --- | --- |
| fan-out | 42k/s | quiclimit ring+GRO: 45k/s | 0.933 [0.8 … 1.1] | ≥ 0.75× | met |
| memory | 3.0 MiB [2.0 MiB … 4.0 MiB] | – | – | ≤ 64.0 MiB | met |
| ping | – | NATS+TLS | – | ≤ 1.25× | no reference |
| all | 42k/s [40k/s … 44k/s] | – | – | – | told |
`
	if diff := cmp.Diff(out.String(), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{1234567, "1/s", "1.23M/s"},
		{56804, "1/s", "57k/s"},
		{232.7, "MB/s", "233 MB/s"},
		{14.162, "s", "14.2 s"},
		{-512, "bytes", "-0.5 KiB"},
		{67108864, "bytes", "64.0 MiB"},
		{273.4, "us", "273 µs"},
		{0, "records", "0 records"},
	} {
		if got := quantity(c.v, c.unit); got != c.want {
			t.Errorf("quantity(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}
