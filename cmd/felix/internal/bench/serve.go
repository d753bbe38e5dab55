package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// shutdownLimit is how long the broker of a bench may take to finish: its readers
// are gone by then.
const shutdownLimit = 5 * time.Second

// brokerOptions are the flags of the hidden command, which the other commands pass
// on.
type brokerOptions struct {
	dir    string // where the data directory is made
	config string
	// member is the configuration of a broker of a cluster, which is used as it is.
	member                 string
	cpuProfile, memProfile string
}

// args are the flags as the hidden command takes them.
func (o *brokerOptions) args() []string {
	args := []string{"broker"}
	for flag, v := range map[string]string{
		"--dir": o.dir, "--config": o.config, "--member": o.member, "--cpuprofile": o.cpuProfile, "--memprofile": o.memProfile,
	} {
		if v != "" {
			args = append(args, flag+"="+v)
		}
	}
	return args
}

// brokerCommand is the broker of a bench, in a process of its own.
func brokerCommand() *cobra.Command {
	o := &brokerOptions{}
	cmd := &cobra.Command{
		Use:    "broker",
		Short:  "The broker process of a bench; its standard input says what it is asked",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// An interrupt of the terminal reaches this process as well; it is the bench
			// that decides when the broker ends.
			ctx := context.WithoutCancel(cmd.Context())
			return o.serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "where the data directory is made")
	f.StringVar(&o.config, "config", "", "configuration file")
	f.StringVar(&o.member, "member", "", "configuration file of a broker of a cluster, used as it is")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "CPU profile of the measured part")
	f.StringVar(&o.memProfile, "memprofile", "", "heap profile at its end")
	return cmd
}

func (o *brokerOptions) serve(ctx context.Context, in io.Reader, out, log io.Writer) (err error) {
	var b *broker.Broker
	var r *reach
	if o.member != "" {
		b, r, err = o.startMember(ctx, log)
	} else {
		var dir string
		if dir, err = os.MkdirTemp(o.dir, "felix-bench-"); err != nil {
			return fmt.Errorf("bench: data directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		b, r, err = o.start(ctx, dir, log)
	}
	if err != nil {
		return err
	}
	obs := &observer{cpuProfile: o.cpuProfile, memProfile: o.memProfile}
	err = serveCommands(r, in, out, obs.look)
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	err = errors.Join(err, obs.end(), b.Shutdown(ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // a reader did not go in time, and what it has missed does not matter any more
	}
	return err
}

// start starts a broker in development mode on ports of its own.
func (o *brokerOptions) start(ctx context.Context, dir string, log io.Writer) (*broker.Broker, *reach, error) {
	var cfg broker.Config
	if o.config != "" {
		var err error
		if cfg, err = broker.ReadConfig(o.config); err != nil {
			return nil, nil, err
		}
	}
	cfg.Dev, cfg.DataDir = true, dir
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Log = onlyErrors(log)
	b, err := broker.Start(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	c, err := settings.ReadContextFile(broker.DevContext(dir))
	if err != nil {
		return nil, nil, errors.Join(err, b.Shutdown(ctx))
	}
	return b, &reach{Addr: c.Addr, Admin: c.Admin, Tenant: c.Tenant, Token: c.Token, CAFile: c.CAFile}, nil
}

// startMember starts a broker of a cluster. Whoever wrote its configuration knows where it is.
func (o *brokerOptions) startMember(ctx context.Context, log io.Writer) (*broker.Broker, *reach, error) {
	cfg, err := broker.ReadConfig(o.member)
	if err != nil {
		return nil, nil, err
	}
	cfg.Log = onlyErrors(log)
	b, err := broker.Start(ctx, cfg)
	return b, &reach{}, err
}

func onlyErrors(log io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
}
