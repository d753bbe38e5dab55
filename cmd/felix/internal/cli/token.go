package cli

import "github.com/spf13/cobra"

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
