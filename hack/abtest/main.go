package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "abtest:", err)
	if _, usage := errors.AsType[*usageError](err); usage {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is a mistake in the command line; trying again does not help.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// options is what the command line asks for.
type options struct {
	pairs   int
	timeout time.Duration
	alpha   float64
	verbose bool
	metrics []metric
	a, b    side
}

func parse(args []string, errOut io.Writer) (options, error) {
	flags := flag.NewFlagSet("abtest", flag.ContinueOnError)
	flags.SetOutput(errOut)
	var (
		o        options
		a        = flags.String("a", "", "command A: the baseline")
		b        = flags.String("b", "", "command B: the candidate")
		expr     = flags.String("metric", "", "regular expression with one group, looked for in the output")
		jsonKeys = flags.String("json", "", "comma-separated keys of the JSON object in the output")
	)
	flags.IntVar(&o.pairs, "n", 10, "runs of each command, 2 to 200")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "bound on one run")
	flags.Float64Var(&o.alpha, "alpha", 0.05, "significance level")
	flags.BoolVar(&o.verbose, "v", false, "print each pair's values")
	if err := flags.Parse(args); err != nil {
		return options{}, &usageError{err}
	}

	var problems []error
	if o.pairs < 2 || o.pairs > 200 {
		problems = append(problems, fmt.Errorf("-n %d: want 2 to 200", o.pairs))
	}
	if o.alpha <= 0 || o.alpha >= 1 {
		problems = append(problems, fmt.Errorf("-alpha %g: want more than 0 and less than 1", o.alpha))
	}
	if *expr != "" {
		m, err := regexpMetric(*expr)
		problems = append(problems, err)
		o.metrics = append(o.metrics, m)
	}
	for key := range strings.SplitSeq(*jsonKeys, ",") {
		if key != "" {
			o.metrics = append(o.metrics, jsonMetric(key))
		}
	}
	if len(o.metrics) == 0 {
		o.metrics = []metric{cpuMetric()}
	}
	var errA, errB error
	o.a, errA = newSide("A", *a, flags.Args())
	o.b, errB = newSide("B", *b, flags.Args())
	if *a == "" || *b == "" {
		problems = append(problems, errors.New("need both -a and -b"))
	}
	if err := errors.Join(append(problems, errA, errB)...); err != nil {
		return options{}, &usageError{err}
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	o, err := parse(args, errOut)
	if err != nil {
		return err
	}
	one := func(second bool) ([]float64, error) {
		s := o.a
		if second {
			s = o.b
		}
		return s.measure(ctx, o.timeout, o.metrics, errOut)
	}
	seen := func(pair int, a, b []float64) {
		if o.verbose {
			fmt.Fprintf(out, "%d  A %v  B %v\n", pair+1, a, b)
		}
	}
	a, b, err := interleave(o.pairs, len(o.metrics), one, seen)
	if err != nil {
		return err
	}
	for i, m := range o.metrics {
		report(out, m.name, a[i], b[i], o.alpha)
	}
	return nil
}
