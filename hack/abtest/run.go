package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// side is one of the two commands.
type side struct {
	name string
	argv []string
}

// newSide splits the command at white space and appends the arguments that both sides share.
func newSide(name, command string, shared []string) (side, error) {
	argv := append(strings.Fields(command), shared...)
	if len(argv) == 0 {
		return side{}, fmt.Errorf("side %s: no command", name)
	}
	return side{name: name, argv: argv}, nil
}

// measure runs the command once and returns its value of each metric. What the command says on standard
// error goes to errOut, as it comes.
func (s side) measure(ctx context.Context, timeout time.Duration, metrics []metric, errOut io.Writer) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...) //nolint:gosec // running what the caller names is the purpose
	// The command may have started a broker of its own: it gets a process group, and too late means all of it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, errOut
	if err := cmd.Run(); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("side %s: %s: took longer than %v", s.name, strings.Join(s.argv, " "), timeout)
		}
		return nil, fmt.Errorf("side %s: %s: %w\n%s", s.name, strings.Join(s.argv, " "), err, out.Bytes())
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	values := make([]float64, len(metrics))
	for i, m := range metrics {
		v, err := m.extract(out.Bytes(), cpu)
		if err != nil {
			return nil, fmt.Errorf("side %s: %w", s.name, err)
		}
		values[i] = v
	}
	return values, nil
}

// interleave runs both sides n times each, in the order A B, B A, A B, ..., so that a drift of the machine
// falls on both alike. A first run of each is not counted. It returns the values per metric.
func interleave(n int, metrics int, run func(second bool) ([]float64, error), seen func(pair int, a, b []float64)) (a, b []sample, err error) {
	a, b = make([]sample, metrics), make([]sample, metrics)
	for _, second := range []bool{false, true} {
		if _, err := run(second); err != nil {
			return nil, nil, err
		}
	}
	for pair := range n {
		var values [2][]float64
		for turn := range 2 {
			second := (pair+turn)%2 == 1
			v, err := run(second)
			if err != nil {
				return nil, nil, err
			}
			if second {
				values[1] = v
			} else {
				values[0] = v
			}
		}
		for m := range metrics {
			a[m] = append(a[m], values[0][m])
			b[m] = append(b[m], values[1][m])
		}
		seen(pair, values[0], values[1])
	}
	return a, b, nil
}
