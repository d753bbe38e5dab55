package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"
)

// Cluster makes a broker one of a cluster. Zero values are the defaults in brackets.
type Cluster struct {
	// Listen is the TCP address for the other brokers (":5002").
	Listen string `json:"listen,omitempty"`
	// Advertise is the host:port by which the others reach it. A host name is looked
	// up again for each connection. Required, unless Listen names a host.
	Advertise string `json:"advertise,omitempty"`
	// Join are the peer addresses of brokers of the cluster, this one's may be among
	// them. With no data and without Join, a broker founds a cluster of its own.
	Join []string `json:"join,omitempty"`
	// Found, with Join, founds the cluster if all of Join answer that they belong to
	// none: so that all brokers of a new cluster may start at once, one with Found (false).
	Found bool `json:"found,omitempty"`
	// Zone is where the broker is; replicas are spread over zones ("").
	Zone string `json:"zone,omitempty"`
	// CAFile, CertFile and KeyFile are what brokers recognise each other by: the
	// certificate names the node. Required.
	CAFile   string `json:"ca_file,omitempty"`
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
	// Groups is how many quorum groups a cluster is founded with (8), Replicas how
	// many brokers hold each of them (3).
	Groups   int `json:"groups,omitempty"`
	Replicas int `json:"replicas,omitempty"`
	// Heartbeat is how long a follower waits to hear of its leader, Election how long
	// a candidate waits for votes (500ms each), and Lease how long a leader that
	// cannot reach a majority goes on (the heartbeat).
	Heartbeat Duration `json:"heartbeat,omitzero"`
	Election  Duration `json:"election,omitzero"`
	Lease     Duration `json:"lease,omitzero"`

	// DialNet makes the connections to other brokers, below TLS; nil: TCP. Tests put
	// faults there.
	DialNet func(ctx context.Context, addr string) (net.Conn, error) `json:"-"`
}

const (
	defaultGroups   = 8
	defaultReplicas = 3
	maxGroups       = 64
	// minTimeout is what a busy machine still manages: below it elections never end.
	minTimeout = Duration(100 * time.Millisecond)
)

// nodeName is what a node of a cluster may be called: it is part of addresses and names.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (c *Cluster) setDefaults(advertise string) {
	c.Listen = cmp.Or(c.Listen, ":5002")
	c.Groups = cmp.Or(c.Groups, defaultGroups)
	c.Replicas = cmp.Or(c.Replicas, defaultReplicas)
	c.Heartbeat = cmp.Or(c.Heartbeat, Duration(500*time.Millisecond))
	c.Election = cmp.Or(c.Election, c.Heartbeat)
	c.Lease = cmp.Or(c.Lease, c.Heartbeat)
	if c.Advertise != "" {
		return
	}
	if host, port, err := net.SplitHostPort(c.Listen); err == nil && routable(host) && port != "0" {
		c.Advertise = c.Listen
	} else if clientHost, _, err := net.SplitHostPort(advertise); err == nil && clientHost != "" && port != "0" {
		c.Advertise = net.JoinHostPort(clientHost, port) // one host, two ports
	}
}

// routable says whether others can reach a host by that name.
func routable(host string) bool {
	ip := net.ParseIP(host)
	return host != "" && (ip == nil || !ip.IsUnspecified())
}

// validate reports every problem of c, which has its defaults, in the configuration of.
func (c *Cluster) validate(of *Config) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("broker: cluster: "+format, args...)) }
	if of.DataDir == "" {
		fail("a member needs a data_dir")
	}
	if !nodeName.MatchString(of.NodeID) {
		fail("node_id %q: want small letters, digits and dashes, 63 at most", of.NodeID)
	}
	if of.Advertise == "" {
		fail("a member needs advertise: clients are sent there by the others")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fail("listen: %w", err)
	}
	if c.Advertise == "" {
		fail("advertise: the others need to know where to reach it")
	} else if host, _, err := net.SplitHostPort(c.Advertise); err != nil || !routable(host) {
		fail("advertise %q: want a host:port that the others can reach", c.Advertise)
	}
	for _, addr := range c.Join {
		if host, _, err := net.SplitHostPort(addr); err != nil || host == "" {
			fail("join %q: want host:port", addr)
		}
	}
	if c.CAFile == "" || c.CertFile == "" || c.KeyFile == "" {
		fail("ca_file, cert_file and key_file are required ('felix cluster certs' makes them)")
	}
	if c.Groups < 1 || c.Groups > maxGroups {
		fail("groups: %d is not within 1 to %d", c.Groups, maxGroups)
	}
	if c.Replicas < 1 || c.Replicas > 7 || c.Replicas%2 == 0 {
		fail("replicas: %d: want 1, 3, 5 or 7", c.Replicas)
	}
	if c.Heartbeat < minTimeout || c.Election < minTimeout || c.Lease <= 0 || c.Lease > c.Heartbeat {
		fail("heartbeat %v, election %v, lease %v: want at least %v for the first two, and a lease that is not longer than the heartbeat",
			time.Duration(c.Heartbeat), time.Duration(c.Election), time.Duration(c.Lease), time.Duration(minTimeout))
	}
	return errors.Join(errs...)
}
