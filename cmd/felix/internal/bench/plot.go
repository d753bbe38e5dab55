package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/guptarohit/asciigraph"

	"felix.dev/felix/cmd/felix/internal/term"
)

// plotLatency draws latency over time.
func plotLatency(w io.Writer, p50, p99 []float64, d time.Duration) {
	if len(p50) < 2 {
		fmt.Fprintln(w, "no plot: nothing was timed")
		return
	}
	options := []asciigraph.Option{
		asciigraph.Height(12),
		asciigraph.Precision(0),
		asciigraph.Caption(fmt.Sprintf("p50 and, above it, p99 of the latency in microseconds over %v", d.Round(time.Millisecond))),
	}
	if term.IsTerminal(w) {
		options = append(options,
			asciigraph.SeriesColors(asciigraph.Default, asciigraph.Red),
			asciigraph.SeriesLegends("p50", "p99"))
	}
	fmt.Fprintln(w, asciigraph.PlotMany([][]float64{p50, p99}, options...))
}
