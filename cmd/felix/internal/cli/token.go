package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/cobra"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := group("token", "Make keys and tokens, and look into them",
		`Make signing keys and tokens, and look into tokens. All of it works without a broker.

A broker trusts, for each tenant, the public keys of one file (felix serve --keys TENANT=FILE). Whoever
has the private key mints tokens with it; they carry what their owner may do, and until when.`,
		`  felix token keygen --out shop.pem --jwks shop.jwks          # the private key, and what the broker gets
  felix serve --keys shop=shop.jwks
  felix token mint --key shop.pem --tenant shop --subject till-1 --publish 'orders' --expires 24h
  felix token show "$TOKEN"`)
	cmd.AddCommand(a.tokenMint(), a.tokenKeygen(), a.tokenJWKS(), a.tokenShow())
	return cmd
}

// devTenant is the tenant of a development broker.
const devTenant = "dev"

// devKey is where a development broker that was started in this folder has its signing key.
var devKey = filepath.Join("data", "dev", "key.pem")

func (a *app) tokenMint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mint",
		Short: "Sign a token",
		Long: `Sign a token and print it. What it allows is given by --publish, --subscribe and --manage with patterns of
streams (NAME or NAMESPACE/NAME, * matches anything), or by --perm in the broker's own words. Without any
it allows everything in its tenant.

The default key is that of a development broker that was started in this folder.`,
		Example: `  felix token mint --subject alice
  felix token mint --key shop.pem --tenant shop --subject till-1 --publish orders --subscribe 'prices/*'
  felix token mint --perm 'stream.subscribe:stream:dev/default/*' --expires 10m`,
		Args: args(cobra.NoArgs),
	}
	f := cmd.Flags()
	key := f.String("key", devKey, "file with the private key")
	tenant := f.String("tenant", devTenant, "tenant that the token is for")
	subject := f.String("subject", "cli", "who it is for; shown in lag tables and logs")
	expires := f.Duration("expires", 24*time.Hour, "how long it is valid")
	publish := f.StringArray("publish", nil, "streams it may publish to; may be repeated")
	subscribe := f.StringArray("subscribe", nil, "streams it may read; may be repeated")
	manage := f.StringArray("manage", nil, "streams it may create, change, delete and watch; may be repeated")
	perms := f.StringArray("perm", nil, "a permission as ACTION:RESOURCE; may be repeated")
	cmd.RunE = func(*cobra.Command, []string) error {
		if *expires <= 0 {
			return usagef("--expires %s: a token needs a time to live", *expires)
		}
		all := *perms
		for _, granted := range []struct {
			action  auth.Action
			streams []string
		}{{auth.StreamPublish, *publish}, {auth.StreamSubscribe, *subscribe}, {auth.StreamManage, *manage}} {
			for _, s := range granted.streams {
				all = append(all, permission(granted.action, *tenant, s))
			}
		}
		if len(all) == 0 {
			for _, action := range []auth.Action{auth.StreamPublish, auth.StreamSubscribe, auth.StreamManage} {
				all = append(all, permission(action, *tenant, "*/*"))
			}
		}
		for _, p := range all {
			if err := auth.CheckPermission(p); err != nil {
				return &usageError{err}
			}
		}
		signing, err := auth.LoadKey(vfs.OS, *key)
		if err != nil {
			return fmt.Errorf("signing key: %w", err)
		}
		now := time.Now()
		token, err := auth.Mint(signing, auth.Claims{Subject: *subject, Tenant: *tenant, Permissions: all, IssuedAt: now, Expires: now.Add(*expires)})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.env.Stdout, token)
		return err
	}
	return cmd
}

// permission allows an action on the streams that match a pattern. A pattern without a namespace is in the default
// one.
func permission(action auth.Action, tenant, pattern string) string {
	namespace, name, found := strings.Cut(pattern, "/")
	if !found {
		namespace, name = catalog.DefaultNamespace, pattern
	}
	return string(action) + ":" + auth.StreamResource(tenant, namespace, name)
}

func (a *app) tokenKeygen() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make a signing key",
		Long: `Make an Ed25519 signing key. The private key is written for its owner alone; a file that is there is never
replaced. With --jwks the public key is written as well, for brokers.`,
		Example: "  felix token keygen --out shop.pem --jwks shop.jwks",
		Args:    args(cobra.NoArgs),
	}
	out := cmd.Flags().String("out", "", "file for the private key (required)")
	jwks := cmd.Flags().String("jwks", "", "file for the public key")
	cmd.RunE = func(*cobra.Command, []string) error {
		if *out == "" {
			return usagef("--out is needed: where the private key goes")
		}
		key, err := auth.GenerateKey(nil)
		if err != nil {
			return err
		}
		if err := auth.SaveKey(vfs.OS, *out, key); err != nil {
			return fmt.Errorf("private key: %w", err)
		}
		if *jwks != "" {
			set, err := auth.NewKeySet(key.Public())
			if err != nil {
				return err
			}
			if err := auth.WriteJWKS(vfs.OS, *jwks, set); err != nil {
				return fmt.Errorf("public key: %w", err)
			}
		}
		_, err = fmt.Fprintln(a.env.Stdout, key.ID)
		return err
	}
	return cmd
}

func (a *app) tokenJWKS() *cobra.Command {
	return &cobra.Command{
		Use:   "jwks KEY...",
		Short: "Print the public keys of private keys, for brokers",
		Long: `Print the public keys that belong to files with private keys, as one JWK set. To exchange a key give the
broker a file with both, mint with the new one, and take the old one out when its tokens have expired.`,
		Example: "  felix token jwks old.pem new.pem > shop.jwks",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			keys := make([]auth.Key, 0, len(files))
			for _, file := range files {
				key, err := auth.LoadKey(vfs.OS, file)
				if err != nil {
					return fmt.Errorf("private key: %w", err)
				}
				keys = append(keys, key.Public())
			}
			set, err := auth.NewKeySet(keys...)
			if err != nil {
				return err
			}
			text, err := set.JWKS()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.env.Stdout, strings.TrimSpace(string(text)))
			return err
		},
	}
}

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
		Long: `Show what a token says: the one given, the one on standard input for -, or that of the settings (see
'felix context'). Without --jwks its signature is not checked. With it, a token that a broker with these
keys would refuse is a failure.`,
		Example: "  felix token show\n  felix token show \"$TOKEN\" --jwks shop.jwks",
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
