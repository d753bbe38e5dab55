package broker

import (
	"log/slog"

	"felix.dev/felix/broker/auth"
)

// keys are the keys of files and, in development mode, the key of its tenant.
type keys struct {
	files *auth.FileKeys // nil: none
	dev   *auth.KeySet   // nil: not in development mode
}

// KeySet implements auth.KeySource.
func (k keys) KeySet(tenant string) (*auth.KeySet, error) {
	switch {
	case k.dev != nil && tenant == devTenant:
		return k.dev, nil
	case k.files != nil:
		return k.files.KeySet(tenant)
	}
	return nil, auth.ErrUnknownTenant
}

func (b *Broker) keyProblem(tenant string, err error) {
	if err != nil {
		b.log.Error("key file cannot be used, the last good keys stay in force", slog.String("tenant", tenant), slog.Any("error", err))
		return
	}
	b.log.Info("key file is good again", slog.String("tenant", tenant))
}
