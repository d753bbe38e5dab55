//go:build unix

package devcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script makes a program that is called like felix.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "felix")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func one(t *testing.T, text string) *Broker {
	t.Helper()
	b := prepare(t, Config{Dir: t.TempDir(), Brokers: 1, Binary: script(t, text)}).Brokers[0]
	t.Cleanup(b.Kill)
	return b
}

// saysWithin waits for a line in the log.
func saysWithin(t *testing.T, b *Broker, want string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(b.LastWords(1<<10), want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not say %q, but %q", want, b.LastWords(1<<10))
		}
	}
}

func TestProcess(t *testing.T) {
	b := one(t, `echo "called $1 $2 $3"; trap 'echo over; exit 0' TERM; while :; do sleep 0.05; done`)
	if b.Running() || b.Pid() != 0 {
		t.Error("it runs before it was started")
	}
	<-b.Exited()
	b.Kill()
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	saysWithin(t, b, "called serve --config "+b.ConfigFile())
	if err := b.Start(); !errors.Is(err, ErrRunning) {
		t.Errorf("started twice: %v", err)
	}
	if err := b.Wipe(); !errors.Is(err, ErrRunning) {
		t.Errorf("wiped while it runs: %v", err)
	}
	if err := b.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	if err := b.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if err := b.Terminate(t.Context()); err != nil || b.Running() || b.Why() != nil {
		t.Errorf("terminate: %v, running %v, %v", err, b.Running(), b.Why())
	}
	saysWithin(t, b, "over")
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	b.Kill()
	if b.Running() || b.Why() == nil {
		t.Errorf("killed: running %v, %v", b.Running(), b.Why())
	}
	if err := b.Signal(syscall.SIGSTOP); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to nobody: %v", err)
	}
	if err := os.MkdirAll(b.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.Wipe(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data after a wipe: %v", err)
	}
}

// One that does not end is killed when the time is up; one that ends in disorder is told with what it has said last.
func TestProcessThatDoesNotEnd(t *testing.T) {
	b := one(t, `trap '' TERM; echo deaf; while :; do sleep 0.05; done`)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	saysWithin(t, b, "deaf")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.Terminate(ctx); !errors.Is(err, context.DeadlineExceeded) || b.Running() {
		t.Errorf("got %v, running %v", err, b.Running())
	}
}

func TestProcessThatEndsInstead(t *testing.T) {
	b := one(t, `echo "no room"; exit 3`)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v, want its last words", err)
	}
	c := prepare(t, Config{Dir: t.TempDir(), Binary: script(t, "exit 3")})
	if err := c.Start(t.Context()); err == nil {
		t.Error("a cluster without brokers has started")
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}
