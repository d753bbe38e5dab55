package main

import (
	"math"
	"testing"
)

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}

// TestPValue compares with printed tables of Student's t-distribution.
func TestPValue(t *testing.T) {
	for _, c := range []struct {
		name        string
		t, df, want float64
	}{
		{"df 1, 5 %", 12.706, 1, 0.05},
		{"df 10, 5 %", 2.228, 10, 0.05},
		{"df 20, 5 %", 2.086, 20, 0.05},
		{"df 20, 1 %", 2.845, 20, 0.01},
		{"df 120, 5 %", 1.980, 120, 0.05},
		{"sign does not matter", -2.228, 10, 0.05},
		{"no difference", 0, 7, 1},
		{"not a number", math.NaN(), 7, 1},
		{"infinite", math.Inf(1), 7, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pValue(c.t, c.df); math.Abs(got-c.want) > 2e-4 {
				t.Errorf("pValue(%v, %v) = %v, want %v", c.t, c.df, got, c.want)
			}
		})
	}
}

// TestPValueClosedForm: for 1 and 2 degrees of freedom the distribution has a closed form.
func TestPValueClosedForm(t *testing.T) {
	for x := 0.01; x < 300; x *= 1.7 {
		if got, want := pValue(x, 1), 1-2*math.Atan(x)/math.Pi; !near(got, want, 1e-9) {
			t.Errorf("pValue(%v, 1) = %v, want %v", x, got, want)
		}
		if got, want := pValue(x, 2), 1-x/math.Sqrt(2+x*x); !near(got, want, 1e-9) {
			t.Errorf("pValue(%v, 2) = %v, want %v", x, got, want)
		}
	}
}

func TestTQuantile(t *testing.T) {
	for _, c := range []struct{ p, df, want float64 }{
		{0.975, 1, 12.706205},
		{0.975, 10, 2.228139},
		{0.995, 5, 4.032143},
		{0.5, 9, 0},
	} {
		if got := tQuantile(c.p, c.df); !near(got, c.want, 1e-5) {
			t.Errorf("tQuantile(%v, %v) = %v, want %v", c.p, c.df, got, c.want)
		}
	}
}

func TestSample(t *testing.T) {
	s := sample{4, 2, 10, 8}
	if got := s.mean(); got != 6 {
		t.Errorf("mean = %v, want 6", got)
	}
	if got, want := s.stddev(), math.Sqrt(40.0/3); !near(got, want, 1e-12) {
		t.Errorf("stddev = %v, want %v", got, want)
	}
	if got := s.median(); got != 6 {
		t.Errorf("median of an even count = %v, want 6", got)
	}
	if got := s[:3].median(); got != 4 {
		t.Errorf("median of an odd count = %v, want 4", got)
	}
	if s[0] != 4 {
		t.Errorf("median sorted its input: %v", s)
	}
	if got := (sample{0, 0}).cv(); got != 0 {
		t.Errorf("cv of zeros = %v, want 0", got)
	}
}

// TestWelch compares with values from another program, which takes the variances as exact fractions and
// integrates the density of the t-distribution by Simpson's rule.
func TestWelch(t *testing.T) {
	b := sample{27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4}
	a := sample{27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.9}
	got := welchTest(a, b)
	if !near(got.t, -2.879714362876703, 1e-9) || !near(got.df, 27.904304538301975, 1e-9) || math.Abs(got.p-0.0075613975024) > 1e-9 {
		t.Errorf("welch = %+v", got)
	}
	swapped := welchTest(b, a)
	if !near(swapped.t, -got.t, 1e-12) || !near(swapped.p, got.p, 1e-12) {
		t.Errorf("swapped sides: %+v against %+v", swapped, got)
	}
}

func TestWithoutSpread(t *testing.T) {
	same, more := sample{5, 5, 5}, sample{6, 6, 6}
	if got := welchTest(same, same); got.p != 1 || got.t != 0 {
		t.Errorf("equal constants: %+v", got)
	}
	if got := welchTest(same, more); got.p != 0 || !math.IsInf(got.t, 1) {
		t.Errorf("different constants: %+v", got)
	}
	if got, ok := pairedTest(same, more, 0.05); !ok || got.p != 0 || !near(got.ratio, 1.2, 1e-12) {
		t.Errorf("paired, different constants: %+v %v", got, ok)
	}
}

// TestPaired: a common drift hides a 10 % difference from Welch's test, and not from the paired one.
func TestPaired(t *testing.T) {
	drift := []float64{100, 140, 90, 200, 60, 170, 110, 130}
	noise := []float64{1.01, 0.99, 1.00, 1.02, 0.98, 1.01, 0.99, 1.00}
	var a, b sample
	for i := range drift {
		a = append(a, drift[i])
		b = append(b, drift[i]*1.1*noise[i])
	}
	if w := welchTest(a, b); w.p < 0.3 {
		t.Errorf("welch sees through the drift: %+v", w)
	}
	got, ok := pairedTest(a, b, 0.05)
	if !ok || got.p > 1e-4 || !near(got.ratio, 1.1, 0.005) || got.low > 1.1 || got.high < 1.1 {
		t.Errorf("paired = %+v %v", got, ok)
	}
	if _, ok := pairedTest(sample{1, 0}, sample{1, 1}, 0.05); ok {
		t.Error("a ratio with 0 is defined")
	}
}

func TestRunsNeeded(t *testing.T) {
	if got := runsNeeded(0.02, 1); got != 8 {
		t.Errorf("spread 2 %%, effect 2 %%: %d runs, want 8", got)
	}
	if got := runsNeeded(0, 2); got != 2 {
		t.Errorf("no spread: %d runs, want 2", got)
	}
}
