package main

import (
	"math"
	"slices"
)

// sample is one side's values of one metric, in the order in which they were measured.
type sample []float64

func (s sample) mean() float64 {
	var sum float64
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

// stddev is the sample standard deviation (n-1).
func (s sample) stddev() float64 {
	m := s.mean()
	var sum float64
	for _, x := range s {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(s)-1))
}

// cv is the coefficient of variation; it is 0 when the mean is, because a share of nothing says nothing.
func (s sample) cv() float64 {
	m := s.mean()
	if m == 0 {
		return 0
	}
	return s.stddev() / math.Abs(m)
}

func (s sample) median() float64 {
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// welch is the result of Welch's t-test: unequal variances, two-sided.
type welch struct {
	t, df, p float64
}

func welchTest(a, b sample) welch {
	na, nb := float64(len(a)), float64(len(b))
	va, vb := a.stddev()*a.stddev()/na, b.stddev()*b.stddev()/nb
	diff := b.mean() - a.mean()
	if va+vb == 0 {
		return welch{t: certain(diff), df: na + nb - 2, p: pExact(diff)}
	}
	t := diff / math.Sqrt(va+vb)
	df := (va + vb) * (va + vb) / (va*va/(na-1) + vb*vb/(nb-1))
	return welch{t: t, df: df, p: pValue(t, df)}
}

// paired is the result of a paired t-test on the log ratios b/a of neighbouring runs: the ratio, its
// confidence interval, and the standard deviation of one pair's log ratio.
type paired struct {
	ratio, low, high float64
	p, spread        float64
}

// pairedTest is not defined, and says so, when a value is not positive: a count of drops that is 0 has no
// logarithm.
func pairedTest(a, b sample, alpha float64) (paired, bool) {
	logs := make(sample, len(a))
	for i := range a {
		if a[i] <= 0 || b[i] <= 0 {
			return paired{}, false
		}
		logs[i] = math.Log(b[i] / a[i])
	}
	n := float64(len(logs))
	mean, sd := logs.mean(), logs.stddev()
	if sd == 0 {
		r := math.Exp(mean)
		return paired{ratio: r, low: r, high: r, p: pExact(mean)}, true
	}
	se := sd / math.Sqrt(n)
	half := tQuantile(1-alpha/2, n-1) * se
	return paired{
		ratio:  math.Exp(mean),
		low:    math.Exp(mean - half),
		high:   math.Exp(mean + half),
		p:      pValue(mean/se, n-1),
		spread: sd,
	}, true
}

// runsNeeded is how many runs of each side show a difference of 2 % at 5 % significance in four cases of
// five. cv is one side's relative spread with two arms, or one pair's with one.
func runsNeeded(cv float64, arms int) int {
	const effect, zAlpha, zPower = 0.02, 1.96, 0.84
	root := (zAlpha + zPower) * cv / effect
	return max(2, int(math.Ceil(float64(arms)*root*root)))
}

// certain and pExact answer for samples without any spread, for which a t-test divides by zero.
func certain(diff float64) float64 {
	if diff == 0 {
		return 0
	}
	return math.Inf(int(math.Copysign(1, diff)))
}

func pExact(diff float64) float64 {
	if diff == 0 {
		return 1
	}
	return 0
}
