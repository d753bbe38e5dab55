package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"felix.dev/felix/client"
)

// closeLimit is how long a broker process may take to shut down.
const closeLimit = 15 * time.Second

// process is a broker in a process of its own. It is not safe for concurrent use.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	access
}

// reach is how to get at a broker. A broker process prints it as its first line.
type reach struct {
	Addr   string `json:"addr"`
	Admin  string `json:"admin"`
	Tenant string `json:"tenant"`
	Token  string `json:"token"`
	CAFile string `json:"ca_file"`
}

// startProcess runs a command that speaks as serveCommands does. When ctx ends the
// process is told to, and killed only if it does not.
func startProcess(ctx context.Context, command, env []string) (*process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // it is this program
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = closeLimit
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: broker process: %w", err)
	}
	cmd.Cancel = in.Close // a process that is killed leaves its data behind
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: broker process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: broker process: %w", err)
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	var r reach
	if err := p.answer(&r); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.cfg = client.Config{Addrs: []string{r.Addr}, Tenant: r.Tenant, Token: r.Token, CAFile: r.CAFile}
	p.admin = newAdmin(r.Admin, r.Token)
	return p, nil
}

// answer reads one line from the process.
func (p *process) answer(into any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("bench: the broker process ended: %w", err)
	}
	var failed struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(line, &failed); err != nil {
		return fmt.Errorf("bench: the broker process said %q: %w", line, err)
	}
	if failed.Error != "" {
		return fmt.Errorf("bench: broker process: %s", failed.Error)
	}
	return json.Unmarshal(line, into)
}

func (p *process) usage(_ context.Context, m moment) (*usage, error) {
	if _, err := fmt.Fprintln(p.in, string(m)); err != nil {
		return nil, fmt.Errorf("bench: the broker process does not listen: %w", err)
	}
	u := new(usage)
	if err := p.answer(u); err != nil {
		return nil, err
	}
	return u, nil
}

// Close ends the process: the end of its input tells it to shut down. Its streams
// go with it.
func (p *process) Close() error {
	p.closeIdle()
	_ = p.in.Close()
	t := time.AfterFunc(closeLimit, func() { _ = p.cmd.Process.Kill() })
	defer t.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("bench: broker process: %w", err)
	}
	return nil
}

// serveCommands is the other side: it prints where the broker is and answers until
// the input ends.
func serveCommands(r *reach, in io.Reader, out io.Writer, look func(moment) (usage, error)) error {
	enc := json.NewEncoder(out)
	if err := enc.Encode(r); err != nil {
		return err
	}
	for s := bufio.NewScanner(in); s.Scan(); {
		u, err := look(moment(s.Text()))
		if err != nil {
			err = enc.Encode(map[string]string{"error": err.Error()})
		} else {
			err = enc.Encode(u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
