package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// connects adds to a command the flags of those that talk to a broker.
func (a *app) connects(cmd *cobra.Command) {
	a.conn.Register(cmd.Flags())
	cmd.Flags().BoolVar(&a.verbose, "verbose", false, "log what the connection does")
	_ = cmd.Flags().SetAnnotation("verbose", settings.Annotation, []string{"true"}) // fails only for a flag that does not exist
}

// dial connects to the broker that the settings name.
func (a *app) dial(ctx context.Context) (*client.Client, error) {
	s, err := a.resolve()
	if err != nil {
		return nil, err
	}
	var log *slog.Logger
	if a.verbose {
		log = slog.New(slog.NewTextHandler(a.env.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	cfg, err := s.Client(log)
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(ctx, cfg)
	return c, explainRefusal(s, err)
}

// resolve finds the settings of this command line.
func (a *app) resolve() (*settings.Settings, error) { return settings.Resolve(a.conn, a.env.Sources) }
