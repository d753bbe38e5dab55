package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecorder(t *testing.T) {
	r := newRecorder(time.Now(), 0)
	r.from.Store(int64(time.Second))
	// 1..1000 ms over all shards; half a millisecond of each was lateness.
	for i := 1; i <= 1000; i++ {
		st := stamp{due: 2 * time.Second, late: 500 * time.Microsecond}
		r.record(i, st, 2*time.Second+time.Duration(i)*time.Millisecond)
	}
	r.record(0, stamp{due: time.Second - 1}, time.Minute) // warm-up
	due, sent := r.summary()
	near := func(name string, got, want float64) {
		t.Helper()
		if got < want*0.999 || got > want*1.001 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if due.Count != 1000 || sent.Count != 1000 {
		t.Errorf("%d and %d recorded", due.Count, sent.Count)
	}
	near("p50", due.P50, 500_000)
	near("p99", due.P99, 990_000)
	near("p99.9", due.P999, 999_000)
	near("max", due.Max, 1_000_000)
	near("p50 from send", sent.P50, 499_500)
}

func TestRecorderClamps(t *testing.T) {
	r := newRecorder(time.Now(), 0)
	r.record(0, stamp{due: time.Second}, time.Second) // before the measured part
	r.from.Store(1)
	r.record(0, stamp{due: time.Second}, time.Second-1)
	r.record(0, stamp{due: 1}, time.Hour)
	due, _ := r.summary()
	if due.Count != 2 || due.P50 != 1 {
		t.Errorf("%+v", due)
	}
}

func TestSeries(t *testing.T) {
	r := newRecorder(time.Now(), plotSlots*time.Second)
	r.from.Store(1)
	for _, at := range []int{0, 1, 5, 500} { // the last is beyond the plot, and goes to its end
		due := time.Duration(at)*time.Second + 1
		r.record(at, stamp{due: due}, due+time.Duration(at+1)*time.Microsecond)
	}
	p50, p99 := r.series()
	want := make([]float64, plotSlots)
	for i := range want {
		switch {
		case i == 0:
			want[i] = 1
		case i < 5:
			want[i] = 2
		case i < plotSlots-1:
			want[i] = 6
		default:
			want[i] = 501
		}
	}
	// Columns have two digits.
	rounded := cmp.Comparer(func(a, b float64) bool { return a <= b*1.01 && b <= a*1.01 })
	if diff := cmp.Diff(p50, want, rounded); diff != "" {
		t.Errorf("p50 (-got +want)\n%s", diff)
	}
	if diff := cmp.Diff(p99, want, rounded); diff != "" {
		t.Errorf("p99 (-got +want)\n%s", diff)
	}
	var out strings.Builder
	plotLatency(&out, p50, p99, time.Minute)
	if !strings.Contains(out.String(), "p99 of the latency in microseconds over 1m0s") {
		t.Errorf("plot:\n%s", out.String())
	}
	out.Reset()
	plotLatency(&out, nil, nil, time.Minute)
	if !strings.Contains(out.String(), "no plot") {
		t.Errorf("plot of nothing:\n%s", out.String())
	}
}
