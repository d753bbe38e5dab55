package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// result is one run of one command, as it is kept.
type result struct {
	Round   int             `json:"round"`
	Group   string          `json:"group"`
	Command string          `json:"command"`
	Line    string          `json:"line"` // the command line
	Started time.Time       `json:"started_at"`
	Seconds float64         `json:"seconds"`
	Load    string          `json:"loadavg,omitempty"` // of the machine, before
	Error   string          `json:"error,omitempty"`
	Metrics metrics         `json:"metrics,omitempty"`
	Output  string          `json:"output,omitempty"`
	Report  json.RawMessage `json:"report,omitempty"`
}

// runner runs commands.
type runner struct {
	paths   map[tool]string // a tool without a path is not there
	timeout time.Duration
	raw     io.Writer // a JSON line for each run
	log     io.Writer
}

// usable are the commands of a group whose tools are there.
func (r *runner) usable(g group) []command {
	var cs []command
	for _, c := range g.commands {
		if r.paths[c.tool] != "" {
			cs = append(cs, c)
		}
	}
	return cs
}

// rounds runs every group n times. The order within a group turns around from
// round to round.
func (r *runner) rounds(ctx context.Context, groups []group, n int) ([]result, error) {
	var all []result
	for round := range n {
		for _, g := range groups {
			if g.once && round > 0 {
				continue
			}
			cs := r.usable(g)
			for i := range cs {
				c := cs[i]
				if round%2 == 1 {
					c = cs[len(cs)-1-i]
				}
				res := r.run(ctx, c)
				res.Round, res.Group = round, g.name
				if err := ctx.Err(); err != nil {
					return all, err
				}
				fmt.Fprintf(r.log, "%d/%d %s: %s %.1f s %s\n", round+1, n, g.name, c.name, res.Seconds, res.Error)
				if err := json.NewEncoder(r.raw).Encode(res); err != nil {
					return all, err
				}
				all = append(all, res)
			}
		}
	}
	return all, nil
}

// run runs a command once.
func (r *runner) run(ctx context.Context, c command) result {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.paths[c.tool], c.args...)
	cmd.WaitDelay = 5 * time.Second
	if c.one {
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	res := result{
		Command: c.name, Line: string(c.tool) + " " + strings.Join(c.args, " "),
		Started: time.Now().UTC(), Load: loadavg(),
	}
	err := cmd.Run()
	res.Seconds = time.Since(res.Started).Seconds()
	var perr error
	if c.tool == felix {
		res.Metrics, res.Report, perr = parseReport(out.Bytes())
	} else {
		res.Metrics, perr = parseLine(out.Bytes())
		res.Output = strings.TrimSpace(out.String())
	}
	switch {
	case err != nil:
		res.Error = fmt.Sprintf("%v: %s", err, lastLine(errOut.String()))
	case perr != nil:
		res.Error = perr.Error()
	}
	return res
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// loadavg is empty where there is none.
func loadavg() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
