package main

import (
	"fmt"
	"io"
)

// report prints what the two samples of one metric say.
func report(w io.Writer, name string, a, b sample, alpha float64) {
	fmt.Fprintf(w, "%s\n", name)
	fmt.Fprintf(w, "  A       median %.5g  mean %.5g  cv %.2f%%\n", a.median(), a.mean(), 100*a.cv())
	fmt.Fprintf(w, "  B       median %.5g  mean %.5g  cv %.2f%%\n", b.median(), b.mean(), 100*b.cv())

	wt := welchTest(a, b)
	fmt.Fprintf(w, "  welch   %s  t=%.2f  df=%.1f  p=%.4f\n", ratio(a, b), wt.t, wt.df, wt.p)

	pt, ok := pairedTest(a, b, alpha)
	if !ok {
		fmt.Fprintf(w, "  paired  not defined: a value is not positive\n")
		fmt.Fprintf(w, "  %s (welch)\n", verdict(wt.p, alpha))
		return
	}
	fmt.Fprintf(w, "  paired  B/A=%.4f  [%.4f, %.4f]  p=%.4f  spread of a pair %.2f%%\n", pt.ratio, pt.low, pt.high, pt.p, 100*pt.spread)
	fmt.Fprintf(w, "  %s; to see 2%% in four cases of five: %d pairs (welch: %d runs of each)\n",
		verdict(pt.p, alpha), runsNeeded(pt.spread, 1), runsNeeded((a.cv()+b.cv())/2, 2))
}

func ratio(a, b sample) string {
	if a.mean() == 0 {
		return fmt.Sprintf("B-A=%.4g", b.mean())
	}
	return fmt.Sprintf("B/A=%.4f", b.mean()/a.mean())
}

func verdict(p, alpha float64) string {
	if p < alpha {
		return "DIFFERS"
	}
	return "no difference shown"
}
