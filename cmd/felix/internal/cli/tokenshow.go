package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/cobra"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/cmd/felix/internal/term"
)

// shownToken is a token as `felix token show` prints it.
type shownToken struct {
	KeyID       string    `json:"key_id,omitempty"`
	Algorithm   string    `json:"algorithm"`
	Issuer      string    `json:"issuer"`
	Subject     string    `json:"subject"`
	Tenant      string    `json:"tenant"`
	Audience    []string  `json:"audience"`
	IssuedAt    time.Time `json:"issued_at,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
	Permissions []string  `json:"permissions"`
	// Signature is "not checked", "good", or why it is not.
	Signature string `json:"signature"`
}

// tokenClaims are the claims of a token as they stand in it.
type tokenClaims struct {
	jwt.RegisteredClaims

	Tenant      string   `json:"tid"`
	Permissions []string `json:"perms"`
}

func (a *app) tokenShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [TOKEN]",
		Short: "Show what a token says",
		Long: `Show what a token says: the one given, the one in a file for @FILE, the one on standard input for -, or
that of the settings (see 'felix context'). Without --jwks its signature is not checked. With it, a token that a broker with these
keys would refuse is a failure.`,
		Example: "  felix token show\n  felix token show @token\n  felix token show \"$TOKEN\" --jwks shop.jwks",
		Args:    args(cobra.MaximumNArgs(1)),
	}
	a.conn.Register(cmd.Flags())
	jwks := cmd.Flags().String("jwks", "", "check it with the public keys in this file")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		token, err := a.tokenToShow(args)
		if err != nil {
			return err
		}
		shown, err := readToken(token)
		if err != nil {
			return err
		}
		var refused error
		if *jwks != "" {
			if refused = checkToken(cmd, shown.Tenant, token, *jwks); refused != nil {
				shown.Signature = oneLine(refused)
			} else {
				shown.Signature = "good"
			}
		}
		if err := printAs(a.env.Stdout, output.value, shown, func() *term.Table { return tokenTable(shown) }); err != nil {
			return err
		}
		return refused
	}
	return cmd
}

func (a *app) tokenToShow(args []string) (string, error) {
	switch {
	case len(args) == 0:
		s, err := a.resolve()
		if err != nil {
			return "", err
		}
		if s.Token.Value == "" {
			return "", usagef("there is no token in the settings; give one, or - to read it from standard input")
		}
		return s.Token.Value, nil
	case args[0] == "-":
		text, err := io.ReadAll(io.LimitReader(a.env.Stdin, auth.MaxTokenBytes))
		return strings.TrimSpace(string(text)), err
	}
	if name, ok := strings.CutPrefix(args[0], "@"); ok {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("token: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	return args[0], nil
}

func readToken(token string) (shownToken, error) {
	var claims tokenClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	if err != nil {
		return shownToken{}, fmt.Errorf("this is no token: %w", err)
	}
	s := shownToken{
		Issuer: claims.Issuer, Subject: claims.Subject, Tenant: claims.Tenant, Audience: claims.Audience,
		Permissions: claims.Permissions, Algorithm: parsed.Method.Alg(), Signature: "not checked",
	}
	// A header of another type is as good as none.
	s.KeyID, _ = parsed.Header["kid"].(string)
	if claims.IssuedAt != nil {
		s.IssuedAt = claims.IssuedAt.Time
	}
	if claims.ExpiresAt != nil {
		s.Expires = claims.ExpiresAt.Time
	}
	return s, nil
}

// checkToken asks the same code that a broker asks.
func checkToken(cmd *cobra.Command, tenant, token, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("public keys: %w", err)
	}
	set, err := auth.ParseJWKS(text)
	if err != nil {
		return fmt.Errorf("public keys in %s: %w", file, err)
	}
	verifier, err := auth.NewVerifier(auth.Config{Keys: auth.StaticKeys{tenant: set}})
	if err != nil {
		return err
	}
	_, err = verifier.Verify(cmd.Context(), tenant, token)
	return err
}

func tokenTable(s shownToken) *term.Table {
	t := term.NewTable("SUBJECT", s.Subject)
	t.Row("tenant", s.Tenant)
	t.Row("issuer", s.Issuer)
	t.Row("audience", strings.Join(s.Audience, ", "))
	t.Row("key", fmt.Sprintf("%s %s", s.Algorithm, s.KeyID))
	t.Row("issued", moment(s.IssuedAt))
	t.Row("expires", moment(s.Expires))
	for i, p := range s.Permissions {
		name := ""
		if i == 0 {
			name = "may"
		}
		t.Row(name, p)
	}
	t.Row("signature", s.Signature)
	return t
}

func moment(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := time.Until(at).Truncate(time.Second)
	if d < 0 {
		return fmt.Sprintf("%s (%s ago)", at.UTC().Format(time.RFC3339), term.Duration(-d))
	}
	return fmt.Sprintf("%s (in %s)", at.UTC().Format(time.RFC3339), term.Duration(d))
}
