package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker"
)

// clusterOptions are the flags of serve that make a broker one of several.
type clusterOptions struct {
	member bool
	join   []string
	node   string
	zone   string

	listen, advertise string
	ca, cert, key     string
}

func (o *clusterOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.member, "cluster", false, "be one of a cluster: of the one in --data, or found one")
	f.StringSliceVar(&o.join, "join", nil, "HOST:PORT of brokers of the cluster to join; implies --cluster; may be repeated")
	f.StringVar(&o.node, "node-id", "", "name of this broker in the cluster (default: the host's name)")
	f.StringVar(&o.zone, "zone", "", "where this broker is; replicas are spread over zones")
	f.StringVar(&o.listen, "peer-listen", "", "TCP address for the other brokers (default \":5002\")")
	f.StringVar(&o.advertise, "peer-advertise", "", "HOST:PORT by which the other brokers reach it (default: the host of --advertise)")
	f.StringVar(&o.ca, "peer-ca", "", "PEM file with the certificates of the cluster's CA")
	f.StringVar(&o.cert, "peer-cert", "", "PEM file with the certificate that names this broker to the others")
	f.StringVar(&o.key, "peer-key", "", "PEM file with its private key")
}

// apply puts what was given over the configuration.
func (o *clusterOptions) apply(cfg *broker.Config) error {
	cfg.NodeID = cmp.Or(o.node, cfg.NodeID)
	if cfg.Cluster == nil && !o.member && len(o.join) == 0 {
		if o.listen+o.advertise+o.ca+o.cert+o.key+o.zone != "" {
			return usagef("the flags --zone and --peer-* are for members of a cluster: give --cluster or --join, too")
		}
		return nil
	}
	c := broker.Cluster{}
	if cfg.Cluster != nil {
		c = *cfg.Cluster
	}
	if len(o.join) > 0 {
		c.Join = o.join
	}
	c.Zone = cmp.Or(o.zone, c.Zone)
	c.Listen = cmp.Or(o.listen, c.Listen)
	c.Advertise = cmp.Or(o.advertise, c.Advertise)
	c.CAFile = cmp.Or(o.ca, c.CAFile)
	c.CertFile = cmp.Or(o.cert, c.CertFile)
	c.KeyFile = cmp.Or(o.key, c.KeyFile)
	cfg.Cluster = &c
	return nil
}
