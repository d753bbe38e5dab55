package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/vfs"
)

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
