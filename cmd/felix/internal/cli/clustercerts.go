package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/peer/pki"
)

const (
	defaultCADir    = "cluster-ca"
	defaultCertsDir = "certs"
	day             = 24 * time.Hour
	maxCertDays     = 10 * 365
)

// nodeName is what a member of a cluster may be called.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (a *app) clusterCerts() *cobra.Command {
	cmd := group("certs", "Make the certificates by which brokers know each other",
		`Make the CA of a cluster, and certificates for its brokers. It works without a broker.

Brokers of a cluster trust each other because one CA signed their certificates, and each certificate names its
broker. ca.crt and a broker's own certificate and key are all that a broker is given; ca.key signs new ones and
is best kept elsewhere. Certificates of any other CA will do as well: they need the broker's name, or felix-peer
for any broker, as a DNS name, and must be for servers and clients.

A broker takes files that were replaced at its next connection, without a restart.`,
		`  felix cluster certs init
  felix cluster certs issue felix-0 felix-1 felix-2
  felix serve --cluster --node-id felix-0 --peer-ca certs/felix-0/ca.crt \
      --peer-cert certs/felix-0/node.crt --peer-key certs/felix-0/node.key`)
	cmd.AddCommand(a.clusterCertsInit(), a.clusterCertsIssue())
	return cmd
}

func (a *app) clusterCertsInit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the CA of a new cluster",
		Long: `Make the CA of a new cluster: ca.crt and ca.key, good for ten years. A CA that is there is never replaced: no
broker would believe the others any more.`,
		Example: "  felix cluster certs init --ca-dir /secure/felix-ca",
		Args:    args(cobra.NoArgs),
	}
	dir := cmd.Flags().String("ca-dir", defaultCADir, "where the CA is kept")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := pki.CreateCA(*dir, time.Now()); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.env.Stdout, filepath.Join(*dir, "ca.crt"))
		return err
	}
	return cmd
}

func (a *app) clusterCertsIssue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue NODE...",
		Short: "Make certificates for brokers",
		Long: `Make a certificate and a key for each broker of these names (its --node-id): a folder of that name with node.crt,
node.key and ca.crt. Those that are there are replaced, which is how certificates are renewed.

The name felix-peer stands for any broker, for clusters whose brokers share one certificate.`,
		Example: `  felix cluster certs issue felix-0 felix-1 felix-2
  felix cluster certs issue felix-1 --out /etc/felix --days 90`,
		Args: args(cobra.MinimumNArgs(1)),
	}
	caDir := cmd.Flags().String("ca-dir", defaultCADir, "where the CA is kept")
	out := cmd.Flags().String("out", defaultCertsDir, "where the brokers' folders go")
	days := cmd.Flags().Int("days", int(pki.NodeFor/day), "how long the certificates are good, at most until the CA expires")
	cmd.RunE = func(_ *cobra.Command, nodes []string) error {
		if *days < 1 || *days > maxCertDays {
			return usagef("--days %d: want 1 to %d", *days, maxCertDays)
		}
		for _, node := range nodes {
			if !nodeName.MatchString(node) {
				return usagef("%q is no name of a broker: want small letters, digits and dashes, 63 at most", node)
			}
		}
		for _, node := range nodes {
			dir := filepath.Join(*out, node)
			err := pki.IssueFor(*caDir, dir, node, time.Now(), time.Duration(*days)*day)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w ('felix cluster certs init' makes a CA)", err)
			}
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(a.env.Stdout, dir); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}
