package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"felix.dev/felix/broker/admin"
)

// Broker is one broker of a cluster: a process, or none.
type Broker struct {
	Name string
	// Dir is all that is its own.
	Dir string
	// Addr is for clients, Admin for the admin, Peer for the other brokers.
	Addr, Admin, Peer string

	binary string

	mu sync.Mutex
	// run is the process, nil if none was started. Guarded by mu.
	run *run
}

// run is one process from its beginning to its end.
type run struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // why it ended; set before exited is closed
}

// ErrRunning says that a broker's process is there already.
var ErrRunning = errors.New("it is running")

// ConfigFile is what the process reads.
func (b *Broker) ConfigFile() string { return filepath.Join(b.Dir, "broker.yaml") }

// DataDir is what the broker keeps.
func (b *Broker) DataDir() string { return filepath.Join(b.Dir, "data") }

// LogFile is what the broker says.
func (b *Broker) LogFile() string { return filepath.Join(b.Dir, "broker.log") }

// Start starts the process. It does not wait until the broker serves.
func (b *Broker) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run != nil && !b.run.over() {
		return fmt.Errorf("broker %s: %w", b.Name, ErrRunning)
	}
	log, err := os.OpenFile(b.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("broker %s: %w", b.Name, err)
	}
	cmd := exec.Command(b.binary, "serve", "--config", b.ConfigFile(), "--log-format", "text") //nolint:gosec,noctx // of the program that was asked for, and ended by Kill and Terminate
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("broker %s: %w", b.Name, err), log.Close())
	}
	r := &run{cmd: cmd, exited: make(chan struct{})}
	b.run = r
	go func() {
		r.err = errors.Join(cmd.Wait(), log.Close())
		close(r.exited)
	}()
	return nil
}

func (r *run) over() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

func (b *Broker) current() *run {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.run
}

// never is the end of a process that there is not.
var never = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Exited is closed when there is no process.
func (b *Broker) Exited() <-chan struct{} {
	if r := b.current(); r != nil {
		return r.exited
	}
	return never
}

// Running says that there is a process.
func (b *Broker) Running() bool {
	r := b.current()
	return r != nil && !r.over()
}

// Pid is the process's id, 0 if there is none.
func (b *Broker) Pid() int {
	if r := b.current(); r != nil && !r.over() {
		return r.cmd.Process.Pid
	}
	return 0
}

// Why is why the last process has ended, nil if that was in order.
func (b *Broker) Why() error {
	if r := b.current(); r != nil && r.over() {
		return r.err
	}
	return nil
}

// Ready waits until the broker is ready to serve. It returns an error when the process ends instead.
func (b *Broker) Ready(ctx context.Context) error {
	c := &admin.Client{BaseURL: "http://" + b.Admin, HTTP: oneRequest}
	exited := b.Exited()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		r, err := c.Readiness(ctx)
		if err == nil && r.Ready {
			return nil
		}
		if ctx.Err() == nil {
			if last = err; err == nil {
				last = fmt.Errorf("not ready: %+v", r.Checks)
			}
		}
		select {
		case <-tick.C:
		case <-exited:
			return fmt.Errorf("broker %s ended instead of serving: %w\n%s", b.Name, b.Why(), b.LastWords(2<<10))
		case <-ctx.Done():
			return fmt.Errorf("broker %s does not serve: %w; %w", b.Name, last, ctx.Err())
		}
	}
}

// Signal sends a signal, such as SIGSTOP and SIGCONT.
func (b *Broker) Signal(s syscall.Signal) error {
	r := b.current()
	if r == nil || r.over() {
		return fmt.Errorf("broker %s: %w", b.Name, os.ErrProcessDone)
	}
	return r.cmd.Process.Signal(s)
}

// Kill is kill -9, and waits until the process is gone. Nothing happens if there is none.
func (b *Broker) Kill() {
	if r := b.current(); r != nil {
		_ = r.cmd.Process.Kill() // it may be over
		<-r.exited
	}
}

// Terminate asks the broker to end and waits for it. If ctx ends first it is killed. The error is that of an end that was
// not in order.
func (b *Broker) Terminate(ctx context.Context) error {
	r := b.current()
	if r == nil || r.over() {
		return nil
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("broker %s: %w", b.Name, err)
	}
	select {
	case <-r.exited:
	case <-ctx.Done():
		b.Kill()
		return fmt.Errorf("broker %s has not ended in time and was killed: %w", b.Name, ctx.Err())
	}
	if r.err != nil {
		return fmt.Errorf("broker %s ended: %w\n%s", b.Name, r.err, b.LastWords(2<<10))
	}
	return nil
}

// Wipe removes all that a broker without a process has kept, as a new volume would.
func (b *Broker) Wipe() error {
	if b.Running() {
		return fmt.Errorf("wipe broker %s: %w", b.Name, ErrRunning)
	}
	return os.RemoveAll(b.DataDir())
}

// LastWords are the last n bytes of the log, in whole lines.
func (b *Broker) LastWords(n int) string {
	text, err := os.ReadFile(b.LogFile())
	if err != nil {
		return err.Error()
	}
	if len(text) > n {
		text = text[len(text)-n:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	return string(text)
}
