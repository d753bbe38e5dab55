package cli

import (
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/settings"
	"felix.dev/felix/cmd/felix/internal/term"
)

// explainRefusal adds to an error what can be seen of a token that was refused without being the broker. Brokers do
// not tell strangers why; their log does.
func explainRefusal(s *settings.Settings, err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	unknown := ok && refused.Code == wire.CodeUnauthenticated || errors.Is(err, &admin.Error{Code: admin.CodeUnauthenticated})
	if !unknown {
		return err
	}
	why := tokenTrouble(s, time.Now())
	if why == "" {
		why = fmt.Sprintf("nothing is wrong with the token that can be seen from here (%s, 'felix token show'); the broker's log says why it refused it", s.Token.From)
	}
	return fmt.Errorf("%w: %s", err, why)
}

// tokenTrouble is what is wrong with the token of the settings as far as its own text tells, "" if nothing is.
func tokenTrouble(s *settings.Settings, now time.Time) string {
	token, err := readToken(s.Token.Value)
	switch {
	case err != nil:
		return fmt.Sprintf("what %s gives is no token", s.Token.From)
	case token.Tenant != s.Tenant.Value:
		return fmt.Sprintf("the token (%s) is for tenant %q, and the tenant (%s) is %q", s.Token.From, token.Tenant, s.Tenant.From, s.Tenant.Value)
	case !token.Expires.IsZero() && token.Expires.Before(now):
		return fmt.Sprintf("the token (%s) expired %s ago", s.Token.From, term.Duration(now.Sub(token.Expires).Truncate(time.Second)))
	}
	return ""
}
