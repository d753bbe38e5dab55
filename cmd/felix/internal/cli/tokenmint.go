package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
)

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

The default key is that of a development broker that was started in this folder. Another --key needs
--tenant: whose key it is, a broker knows only by its configuration.`,
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
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if given := cmd.Flags().Changed; given("key") && !given("tenant") {
			return usagef("--key needs --tenant: the token would be for tenant %q, which trusts other keys", devTenant)
		}
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
