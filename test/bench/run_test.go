package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain makes the test program stand in for the tools: it prints what it is told
// to.
func TestMain(m *testing.M) {
	if line, ok := os.LookupEnv("BENCH_TEST_PRINT"); ok {
		fmt.Println(line)
		for _, a := range os.Args[1:] {
			if a == "fail" {
				fmt.Fprintln(os.Stderr, "noise\nit failed")
				os.Exit(3)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func TestRoundsTurnAround(t *testing.T) {
	t.Setenv("BENCH_TEST_PRINT", "quiclimit frames/s=5")
	var raw bytes.Buffer
	r := &runner{paths: map[tool]string{quiclimit: self(t)}, timeout: time.Minute, raw: &raw, log: io.Discard}
	groups := []group{
		{name: "g", commands: []command{{name: "a", tool: quiclimit}, {name: "b", tool: quiclimit}, {name: "x", tool: natsbench}}},
		{name: "h", commands: []command{{name: "c", tool: quiclimit, args: []string{"fail"}}}},
		{name: "once", commands: []command{{name: "d", tool: quiclimit}}, once: true},
	}
	results, err := r.rounds(t.Context(), groups, 2)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, res := range results {
		order = append(order, fmt.Sprint(res.Round, res.Group, res.Command, res.Metrics["msgs_per_s"]))
	}
	want := []string{"0ga5", "0gb5", "0hc5", "0onced5", "1gb5", "1ga5", "1hc5"}
	for i := range want { // Sprint puts a space between numbers only
		order[i] = strings.ReplaceAll(order[i], " ", "")
	}
	if diff := cmp.Diff(order, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if res := results[2]; res.Error != "exit status 3: it failed" {
		t.Errorf("error %q", res.Error)
	}
	lines := 0
	for d := json.NewDecoder(&raw); ; lines++ {
		var res result
		if d.Decode(&res) != nil {
			break
		}
	}
	if lines != len(results) {
		t.Errorf("%d of %d runs were kept", lines, len(results))
	}
}

func TestTableOfTheProductAlone(t *testing.T) {
	t.Setenv("BENCH_TEST_PRINT", `{"scenario":"idle","version":"v9","idle":{"broker_rss_bytes_per_subscription":5120}}`)
	rawName := filepath.Join(t.TempDir(), "raw.jsonl")
	var out strings.Builder
	args := []string{"-n", "2", "-felix", self(t), "-quiclimit", "", "-natsbench", "", "-only", "idle sub", "-raw", rawName, "-strict"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"felix v9", "| 10000 idle subscriptions, broker RSS each | 5.0 KiB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if b, err := os.ReadFile(rawName); err != nil || bytes.Count(b, []byte("\n")) != 2 {
		t.Errorf("raw runs: %v\n%s", err, b)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{"-only", "("}, {"-nonsense"}, {"-only", "no such group"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestRunStopsWhenTold(t *testing.T) {
	t.Setenv("BENCH_TEST_PRINT", "quiclimit frames/s=5")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &runner{paths: map[tool]string{quiclimit: self(t)}, timeout: time.Minute, raw: io.Discard, log: io.Discard}
	results, err := r.rounds(ctx, []group{{name: "g", commands: []command{{name: "a", tool: quiclimit}}}}, 3)
	if err == nil || len(results) != 0 {
		t.Errorf("%d results, %v", len(results), err)
	}
}
