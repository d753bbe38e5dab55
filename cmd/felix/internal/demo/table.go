package demo

import (
	"fmt"
	"strings"
	"time"

	"felix.dev/felix/cmd/felix/internal/term"
)

// Paint colours what is as promised and what is not.
type Paint interface {
	Good(string) string
	Bad(string) string
	Dim(string) string
}

// resultTable puts the policies side by side, and what was claimed below.
func resultTable(results []Result, paint Paint) string {
	columns := []string{"POLICY"}
	for _, r := range results {
		columns = append(columns, r.Policy)
	}
	t := term.NewTable(columns...)
	row := func(label string, cell func(r *Result) string) {
		cells := []any{label}
		for i := range results {
			cells = append(cells, cell(&results[i]))
		}
		t.Row(cells...)
	}
	row("publisher", func(r *Result) string {
		return fmt.Sprintf("%d records in %s", r.Publisher.Records, term.Duration(time.Duration(r.Publisher.Took)))
	})
	row("  longest wait", func(r *Result) string { return term.Duration(time.Duration(r.Publisher.LongestWait)) })
	row("  refusals told", func(r *Result) string {
		if r.Publisher.Refused == 0 {
			return "0"
		}
		return fmt.Sprintf("%d (%s)", r.Publisher.Refused, strings.Join(r.Publisher.Reasons, ", "))
	})
	for i := range results[0].Readers {
		row(results[0].Readers[i].Name, func(r *Result) string {
			reader := &r.Readers[i]
			text := fmt.Sprintf("%d of %d", reader.Received, reader.Expected)
			if reader.complete() {
				return paint.Good(text)
			}
			return paint.Bad(text)
		})
		row("  gaps, repeats", func(r *Result) string { return fmt.Sprintf("%d, %d", r.Readers[i].Gaps, r.Readers[i].Repeats) })
		row("  ended", func(r *Result) string { return ending(&r.Readers[i]) })
	}
	row("  told to resume at", func(r *Result) string { return lastLag(r, func(l Lag) uint64 { return l.ResumeFrom }) })
	row("  first not received", func(r *Result) string { return lastLag(r, func(l Lag) uint64 { return l.FirstMissing }) })
	row("  read after resuming", func(r *Result) string {
		stalled := r.Readers[len(r.Readers)-1]
		return lastLag(r, func(l Lag) uint64 { return stalled.Received - l.ReadBefore })
	})
	row("  the broker saw it", func(r *Result) string { return fmt.Sprintf("%s, %d behind", r.Seen.State, r.Seen.LagRecords) })
	row("as promised", func(r *Result) string {
		if broken := len(r.Broken()); broken > 0 {
			return paint.Bad(fmt.Sprintf("NO: %d of %s", broken, term.Plural(len(r.Claims), "claim")))
		}
		return paint.Good(fmt.Sprintf("yes, %s checked", term.Plural(len(r.Claims), "claim")))
	})

	var b strings.Builder
	fmt.Fprintf(&b, "Three readers, one stalls. For each policy %s are published; a reader may be %d batches or %s behind, and the\nstalled one has a receive window of %s.\n\n",
		term.Bytes(results[0].Publisher.Bytes), queueBatches, term.Bytes(queueBytes), term.Bytes(stalledWindow))
	b.WriteString(t.String())
	for _, r := range results {
		for _, text := range r.Broken() {
			fmt.Fprintf(&b, "%s %s: %s\n", paint.Bad("NOT SO"), r.Policy, text)
		}
	}
	return b.String()
}

func ending(r *ReaderResult) string {
	if len(r.Lagged) == 0 {
		return "no, read to the end"
	}
	return fmt.Sprintf("as lagged, after %d records", r.Lagged[len(r.Lagged)-1].ReadBefore)
}

func lastLag(r *Result, value func(Lag) uint64) string {
	lagged := r.Readers[len(r.Readers)-1].Lagged
	if len(lagged) == 0 {
		return "-"
	}
	return fmt.Sprint(value(lagged[len(lagged)-1]))
}
