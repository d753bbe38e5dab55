package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errMissed is returned when a measured cell missed its target or could not be
// measured because the product failed.
var errMissed = errors.New("not every target was met")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	var s settings
	n := f.Int("n", 5, "rounds")
	f.DurationVar(&s.duration, "duration", time.Second, "publishing time of a run")
	f.StringVar(&s.dir, "dir", "", "where durable data goes, of both sides (default: the temporary directory)")
	f.IntVar(&s.idle, "idle", 10000, "subscriptions of the idle cell")
	f.IntVar(&s.many, "many", 1000, "subscriptions of the cell in which one of every ten stalls")
	only := f.String("only", "", "run only groups whose name matches this regular expression")
	list := f.Bool("list", false, "print the command lines and do nothing")
	product := f.String("felix", "bin/felix", "the product")
	limit := f.String("quiclimit", os.Getenv("QUICLIMIT"), "reference program (also QUICLIMIT); empty: its cells are left out")
	peer := f.String("natsbench", os.Getenv("NATSBENCH"), "reference program (also NATSBENCH); empty: its cells are left out")
	rawName := f.String("raw", "", "write a JSON line for each run to this file")
	timeout := f.Duration("timeout", 3*time.Minute, "bound on one run")
	strict := f.Bool("strict", false, "fail if a target is missed")
	if err := f.Parse(args); err != nil {
		return err
	}
	filter, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	p := newPlan(s).only(filter)
	if *list {
		p.print(stdout)
		return nil
	}
	raw := io.Discard
	if *rawName != "" {
		file, err := os.Create(*rawName)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // every line was written, or the run has failed
		raw = file
	}
	r := &runner{
		paths:   map[tool]string{felix: *product, quiclimit: *limit, natsbench: *peer},
		timeout: *timeout, raw: raw, log: stderr,
	}
	results, err := r.rounds(ctx, p.groups, *n)
	if len(results) == 0 {
		return errors.Join(err, errors.New("nothing was run"))
	}
	var rows []row
	missed := false
	for _, c := range p.cells {
		row := judge(c, results)
		missed = missed || row.failed
		rows = append(rows, row)
	}
	writeTable(stdout, header{
		date: time.Now().Format(time.DateOnly), version: versionOf(results), machine: machine(ctx),
		rounds: *n, duration: s.duration.String(),
	}, rows)
	if err == nil && missed && *strict {
		err = errMissed
	}
	return err
}

// only keeps the groups that match, and their cells.
func (p *plan) only(filter *regexp.Regexp) *plan {
	out := &plan{}
	for _, g := range p.groups {
		if filter.MatchString(g.name) {
			out.groups = append(out.groups, g)
		}
	}
	for _, c := range p.cells {
		if filter.MatchString(c.group) {
			out.cells = append(out.cells, c)
		}
	}
	return out
}

func (p *plan) print(w io.Writer) {
	for _, g := range p.groups {
		fmt.Fprintln(w, g.name)
		for _, c := range g.commands {
			fmt.Fprintf(w, "\t%s: %s %s\n", c.name, c.tool, strings.Join(c.args, " "))
		}
	}
}

var reportVersion = regexp.MustCompile(`"version":"([^"]*)"`)

func versionOf(results []result) string {
	for _, r := range results {
		if m := reportVersion.FindSubmatch(r.Report); m != nil {
			return string(m[1])
		}
	}
	return "unknown"
}

// machine describes where the runs were made.
func machine(ctx context.Context) string {
	s := fmt.Sprintf("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if model := cpuModel(); model != "" {
		s = model + ", " + s
	}
	if out, err := exec.CommandContext(ctx, "uname", "-r").Output(); err == nil {
		s += ", kernel " + strings.TrimSpace(string(out))
	}
	return s
}

// cpuModel is empty where /proc does not say.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
