package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"
	"time"

	"felix.dev/felix/broker"
)

// brokerEnv makes the test program a broker: its value is the configuration. The
// broker is then the code under test, race detector included, in a process that can
// be killed.
const brokerEnv = "FELIX_FAULTS_BROKER"

// addresses is what a broker process prints once it serves.
type addresses struct{ QUIC, Admin string }

// runBroker serves until its input ends, and is what TestMain becomes.
func runBroker(config string) int {
	var cfg broker.Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	b, err := broker.Start(context.Background(), cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(addresses{b.Addr().String(), b.AdminAddr().String()}); err != nil {
		return 1
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); { // each line asks for what is garbage to go
		debug.FreeOSMemory()
		fmt.Println()
	}
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a broker in a process of its own.
type process struct {
	node

	env []string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcess starts a broker process; env is added to its environment.
func startProcess(t *testing.T, env []string, change ...func(*broker.Config)) *process {
	t.Helper()
	p := &process{node: node{t: t, id: theIdentity(t), cfg: newConfig(t, change...)}, env: env}
	p.start()
	t.Cleanup(p.stop)
	return p
}

// start runs the broker, at the addresses that it had before.
func (p *process) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	config, err := json.Marshal(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), brokerEnv+"="+string(config)), p.env...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = testWait
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.in, p.out = cmd, in, bufio.NewReader(out)
	line, err := p.out.ReadBytes('\n')
	var a addresses
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		p.kill()
		p.t.Fatalf("the broker process did not come up: %v (%q)", err, line)
	}
	p.addr, p.admin = a.QUIC, a.Admin
	p.cfg.Listen, p.cfg.Admin.Listen = a.QUIC, a.Admin
}

// heap is how many bytes the broker holds once its garbage is collected.
func (p *process) heap() int64 {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in)
	if err == nil {
		_, err = p.out.ReadBytes('\n')
	}
	if err != nil {
		p.t.Fatalf("the broker process does not answer: %v", err)
	}
	return int64(p.metrics()["go_memstats_heap_inuse_bytes"])
}

// kill is kill -9.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Errorf("kill: %v", err)
	}
	_ = p.cmd.Wait() // it says that the process was killed
	p.cmd = nil
}

// stop shuts the broker down, if it runs.
func (p *process) stop() {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	_ = p.in.Close()
	late := time.AfterFunc(testWait, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("broker process: %v", err)
	}
	p.cmd = nil
}
