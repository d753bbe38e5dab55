package main

import "math"

// pValue is the two-sided probability of a |t| at least this large under Student's t-distribution.
func pValue(t, df float64) float64 {
	if math.IsNaN(t) || math.IsNaN(df) {
		return 1
	}
	return betaInc(df/2, 0.5, df/(df+t*t))
}

// tQuantile is the t below which a share p >= 0.5 of the distribution lies, found by bisection.
func tQuantile(p, df float64) float64 {
	low, high := 0.0, 1e6
	for range 200 {
		mid := (low + high) / 2
		if 1-pValue(mid, df)/2 < p {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// betaInc is the regularised incomplete beta function I_x(a, b).
func betaInc(a, b, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	lnA, _ := math.Lgamma(a)
	lnB, _ := math.Lgamma(b)
	lnAB, _ := math.Lgamma(a + b)
	front := math.Exp(lnAB - lnA - lnB + a*math.Log(x) + b*math.Log1p(-x))
	// The continued fraction converges fast only on one side of the mean; the other follows by symmetry.
	if x < (a+1)/(a+b+2) {
		return front * betaFraction(a, b, x) / a
	}
	return 1 - front*betaFraction(b, a, 1-x)/b
}

// betaFraction evaluates the continued fraction of the incomplete beta function by Lentz's method.
func betaFraction(a, b, x float64) float64 {
	const (
		tiny     = 1e-300
		accuracy = 1e-14
		steps    = 500
	)
	nonZero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c := 1.0
	d := 1 / nonZero(1-(a+b)*x/(a+1))
	value := d
	for i := 1; i <= steps; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / nonZero(1+even*d)
		c = nonZero(1 + even/c)
		value *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / nonZero(1+odd*d)
		c = nonZero(1 + odd/c)
		value *= d * c
		if math.Abs(d*c-1) < accuracy {
			break
		}
	}
	return value
}
