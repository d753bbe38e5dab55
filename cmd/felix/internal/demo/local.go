package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// tenant is the one of a broker in development mode.
const tenant = "dev"

// namespace is the one of all streams here.
const namespace = "default"

// stopWithin bounds the shutdown of a broker.
const stopWithin = 15 * time.Second

// local is a broker in this process.
type local struct {
	*broker.Broker

	contextFile string
}

// startLocal starts a broker in development mode.
func startLocal(ctx context.Context, cfg broker.Config) (*local, error) {
	cfg.Dev = true
	b, err := broker.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &local{Broker: b, contextFile: broker.DevContext(cfg.DataDir)}, nil
}

// clientConfig is how anyone would connect to it: by its context file and nothing else.
func (l *local) clientConfig(log *slog.Logger) (client.Config, error) {
	none := settings.Sources{Getenv: func(string) string { return "" }}
	s, err := settings.Resolve(settings.Flags{Context: l.contextFile}, none)
	if err != nil {
		return client.Config{}, err
	}
	return s.Client(log)
}

// stop shuts the broker down, also when ctx is over.
func (l *local) stop(ctx context.Context) error {
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := l.Shutdown(stopping); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop the broker: %w", err)
	}
	return nil
}
