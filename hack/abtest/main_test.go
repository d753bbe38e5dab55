package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInterleaveOrder(t *testing.T) {
	var order strings.Builder
	value := 0.0
	run := func(second bool) ([]float64, error) {
		if second {
			order.WriteByte('B')
		} else {
			order.WriteByte('A')
		}
		value++
		return []float64{value}, nil
	}
	a, b, err := interleave(4, 1, run, func(int, []float64, []float64) {})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := order.String(), "AB"+"ABBAABBA"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if len(a[0]) != 4 || len(b[0]) != 4 || a[0][1] != 6 || b[0][1] != 5 {
		t.Errorf("values on the wrong side: A %v, B %v", a, b)
	}
}

func TestInterleaveStops(t *testing.T) {
	boom := errors.New("boom")
	calls := 0
	run := func(bool) ([]float64, error) {
		calls++
		if calls == 4 {
			return nil, boom
		}
		return []float64{1}, nil
	}
	if _, _, err := interleave(5, 1, run, func(int, []float64, []float64) {}); !errors.Is(err, boom) || calls != 4 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	var errOut bytes.Buffer
	_, err := parse([]string{"-n", "1", "-alpha", "2", "-metric", "(", "-a", "x"}, &errOut)
	if _, ok := errors.AsType[*usageError](err); !ok {
		t.Fatalf("error %v, want a usage error", err)
	}
	for _, want := range []string{"-n 1", "-alpha 2", "metric", "both -a and -b"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}

// script writes an executable that stands for a benchmark.
func script(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunComparesTwoCommands(t *testing.T) {
	a := script(t, "a", `echo "progress"; echo "{\"args\": $#, \"rate\": 100}"`)
	b := script(t, "b", `echo "{\"args\": $#, \"rate\": 150}"`)
	var out, errOut bytes.Buffer
	err := run(t.Context(), []string{"-n", "3", "-json", "rate,args", "-a", a + " one", "-b", b + " one", "--", "two", "three"}, &out, &errOut)
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	text := out.String()
	for _, want := range []string{"rate\n", "B/A=1.5000", "DIFFERS", "args\n", "median 3 ", "no difference shown"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestRunFails(t *testing.T) {
	good := script(t, "good", `echo '{"rate": 1}'`)
	for _, c := range []struct{ name, bad, want string }{
		{"exit status", script(t, "bad", `echo why; exit 3`), "exit status 3\nwhy"},
		{"no object", script(t, "silent", `true`), "no JSON object"},
		{"no such program", filepath.Join(t.TempDir(), "missing"), "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			err := run(t.Context(), []string{"-n", "2", "-json", "rate", "-a", good, "-b", c.bad}, &out, &errOut)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestTimeoutKillsTheGroup: a benchmark that hangs is ended with the broker that it started, which would
// otherwise hold the pipe and burn a core under the next run.
func TestTimeoutKillsTheGroup(t *testing.T) {
	hangs := script(t, "hangs", `sleep 600 & wait`)
	s, err := newSide("A", hangs, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = s.measure(context.Background(), 100*time.Millisecond, []metric{cpuMetric()}, os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "took longer") {
		t.Errorf("error %v", err)
	}
	// With a surviving child the pipe stays open until WaitDelay, which is 5 s.
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("came back after %v: the child survived", took)
	}
}
