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
		return fmt.Sprintf("%d in %s", r.Publisher.Records, term.Duration(time.Duration(r.Publisher.Took)))
	})
	row("  longest wait", func(r *Result) string { return term.Duration(time.Duration(r.Publisher.LongestWait)) })
	row("  told to wait", func(r *Result) string {
		if r.Publisher.Refused == 0 {
			return "never"
		}
		return term.Plural(r.Publisher.Refused, "time")
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
	row("  first one missed", func(r *Result) string { return lastLag(r, func(l Lag) uint64 { return l.FirstMissing }) })
	row("  read from there", func(r *Result) string {
		stalled := r.Readers[len(r.Readers)-1]
		return lastLag(r, func(l Lag) uint64 { return stalled.Received - l.ReadBefore })
	})
	row("  its state was", func(r *Result) string { return r.Seen.State })
	row("  it was behind by", func(r *Result) string { return fmt.Sprint(r.Seen.LagRecords) })
	row("promises kept", func(r *Result) string {
		if broken := len(r.Broken()); broken > 0 {
			return paint.Bad(fmt.Sprintf("NO: %d of %d", broken, len(r.Claims)))
		}
		return paint.Good(fmt.Sprintf("yes, all %d", len(r.Claims)))
	})

	var b strings.Builder
	fmt.Fprintf(&b, "Three readers, one stalls. Under each policy %s are published; a reader may\nbe %d batches or %s behind, and the stalled one takes %s unread.\n\n",
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
		return "no"
	}
	return fmt.Sprintf("lagged, at %d", r.Lagged[len(r.Lagged)-1].ReadBefore)
}

func lastLag(r *Result, value func(Lag) uint64) string {
	lagged := r.Readers[len(r.Readers)-1].Lagged
	if len(lagged) == 0 {
		return "-"
	}
	return fmt.Sprint(value(lagged[len(lagged)-1]))
}
