package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// samples finds a value in the rounds of a group. Runs that failed count as
// failures.
func samples(results []result, group string, v value) (all []float64, failed []string) {
	for _, r := range results {
		if r.Group != group || r.Command != v.command {
			continue
		}
		f, ok := r.Metrics[v.key]
		switch {
		case r.Error != "":
			failed = append(failed, r.Error)
		case !ok:
			failed = append(failed, "no "+v.key)
		case v.inverse && f == 0:
			failed = append(failed, v.key+" is 0")
		case v.inverse:
			all = append(all, 1e6/f)
		default:
			all = append(all, f)
		}
	}
	return all, failed
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// row is a judged cell.
type row struct {
	cell
	product, reference float64 // medians
	judged             float64 // the ratio, or the product's value
	low, high          float64 // of what is judged, over single rounds
	verdict            string
	missing            bool // the cell could not be measured here
	failed             bool // it was, and its target was missed, or the product failed
}

func judge(c cell, results []result) row {
	r := row{cell: c}
	product, failed := samples(results, c.group, c.product)
	if len(failed) > 0 {
		r.verdict, r.failed = "FAILED: "+failed[0], true
		return r
	}
	if len(product) == 0 {
		r.verdict, r.missing = "not run", true
		return r
	}
	r.product = median(product)
	r.judged, r.low, r.high = r.product, slices.Min(product), slices.Max(product)
	if c.reference != nil {
		reference, failed := samples(results, c.group, *c.reference)
		if len(reference) == 0 {
			r.missing = true
			if r.verdict = "no reference"; len(failed) > 0 {
				r.verdict = "reference failed: " + failed[0]
			}
			return r
		}
		r.reference = median(reference)
		r.judged = r.product / r.reference
		r.low, r.high = spread(product, reference)
	}
	if r.verdict = "met"; c.relation == told {
		r.verdict = "told"
	}
	if c.relation == atLeast && r.judged < c.limit || c.relation == atMost && r.judged > c.limit {
		r.verdict, r.failed = "MISSED", true
	}
	return r
}

// spread is the lowest and the highest ratio of the same round's runs, as far as
// both sides have one.
func spread(a, b []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range min(len(a), len(b)) {
		low, high = min(low, a[i]/b[i]), max(high, a[i]/b[i])
	}
	return low, high
}

// header says where and how the table was made.
type header struct {
	date, version, machine string
	rounds                 int
	duration               string
}

func writeTable(w io.Writer, h header, rows []row) {
	fmt.Fprintf(w, "%s, felix %s, %s. Medians of %d interleaved runs of %s; in brackets the rounds' lowest and highest.\n\n",
		h.date, h.version, h.machine, h.rounds, h.duration)
	fmt.Fprintln(w, "| cell | product | reference | ratio | target | verdict |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join([]string{
			r.name, r.productText(), r.referenceText(), r.ratioText(), r.targetText(), strings.ReplaceAll(r.verdict, "|", "/"),
		}, " | "))
	}
}

func (r *row) measured() bool {
	return r.verdict == "met" || r.verdict == "MISSED" || r.verdict == "told"
}

func (r *row) productText() string {
	if !r.measured() {
		return "–"
	}
	s := quantity(r.product, r.unit)
	if r.cell.reference == nil {
		s += fmt.Sprintf(" [%s … %s]", quantity(r.low, r.unit), quantity(r.high, r.unit))
	}
	return s
}

func (r *row) referenceText() string {
	switch {
	case r.cell.reference == nil:
		return "–"
	case !r.measured():
		return r.cell.reference.command
	}
	return r.cell.reference.command + ": " + quantity(r.reference, r.unit)
}

func (r *row) ratioText() string {
	if r.cell.reference == nil || !r.measured() {
		return "–"
	}
	return fmt.Sprintf("%s [%s … %s]", quantity(r.judged, ""), quantity(r.low, ""), quantity(r.high, ""))
}

func (r *row) targetText() string {
	if r.relation == told {
		return "–"
	}
	sign := "≥"
	if r.relation == atMost {
		sign = "≤"
	}
	if r.cell.reference == nil {
		return sign + " " + quantity(r.limit, r.unit)
	}
	return fmt.Sprintf("%s %g×", sign, r.limit)
}

// quantity writes a number with three digits in a unit that people read.
func quantity(v float64, unit string) string {
	switch unit {
	case "bytes":
		if math.Abs(v) < 1<<20 {
			return fmt.Sprintf("%.1f KiB", v/1024)
		}
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case "us":
		return fmt.Sprintf("%.0f µs", v)
	}
	var s string
	switch a := math.Abs(v); {
	case a >= 1e6:
		s = fmt.Sprintf("%.2fM", v/1e6)
	case a >= 1e4:
		s = fmt.Sprintf("%.0fk", v/1e3)
	case a >= 100:
		s = fmt.Sprintf("%.0f", v)
	default:
		s = fmt.Sprintf("%.3g", v)
	}
	switch unit {
	case "":
		return s
	case "1/s":
		return s + "/s"
	}
	return s + " " + unit
}
