package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"felix.dev/felix/cmd/felix/internal/settings"
)

// Env is what a command may use of the process that it runs in.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Sources        settings.Sources
	Version        string
	Program        string // as it was called, for commands to try next; "": felix
}

// Main runs the command line of this process and returns its exit status.
//
// The first SIGINT or SIGTERM asks the command to stop, which a broker does in good order; the second one ends the
// process at once.
func Main(version string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	env := Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Sources: settings.SystemSources(), Version: version, Program: os.Args[0],
	}
	return Run(ctx, env, os.Args[1:])
}

// Run runs one command line and returns its exit status. Cancelling ctx asks the command to stop.
func Run(ctx context.Context, env Env, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return report(env.Stderr, cmd, interrupted(ctx, err))
}
