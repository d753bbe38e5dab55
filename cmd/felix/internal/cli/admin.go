package cli

import (
	"context"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// askWithin bounds one question to the admin.
const askWithin = 15 * time.Second

// asking is a client of the admin and whose streams it asks for.
type asking struct {
	*admin.Client

	tenant   string
	settings *settings.Settings
}

// ask runs f with a client of the admin that the settings name.
func (a *app) ask(ctx context.Context, f func(context.Context, asking) error) error {
	s, err := a.resolve()
	if err != nil {
		return err
	}
	if s.Tenant.Value == "" {
		return &settings.MissingError{What: "tenant", Flag: "--tenant", Env: settings.EnvTenant}
	}
	c, err := s.Admin()
	if err != nil {
		return err
	}
	defer c.HTTP.CloseIdleConnections()
	return explainRefusal(s, f(ctx, asking{Client: c, tenant: s.Tenant.Value, settings: s}))
}

// name is the full name of a stream that somebody wrote as NAME or NAMESPACE/NAME.
func (q asking) name(text string) (admin.Name, error) {
	s, err := parseStream(text)
	if err != nil {
		return admin.Name{}, err
	}
	return admin.Name{Tenant: q.tenant, Namespace: s.Namespace, Stream: s.Name}, nil
}
