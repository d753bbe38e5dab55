package broker

import (
	"time"

	"felix.dev/felix/broker/server"
)

// serverConfig is the part of the server's configuration that is configuration.
func (c *Config) serverConfig() *server.Config {
	l := &c.Limits
	return &server.Config{
		Addr: c.Listen, RequireALPN: c.RequireALPN, NodeID: c.NodeID, Advertise: c.Advertise, Cluster: c.Cluster != nil, Log: c.Log,
		MaxConnections: l.Connections, MaxConnectionsPerAddress: l.ConnectionsPerAddress,
		MaxStreams: l.StreamsPerConnection, MaxSubscriptions: l.Subscriptions,
		AuthTimeout: time.Duration(l.AuthTimeout), IdleTimeout: time.Duration(l.IdleTimeout),
		IngressBytes: l.IngressBytes, ConnectionIngressBytes: l.ConnectionIngressBytes, ShardIngressBytes: l.ShardIngressBytes,
		PublishIngressWait: time.Duration(l.PublishIngressWait),
		MaxRecordBytes:     l.MaxRecordBytes, MaxBatchBytes: l.MaxBatchBytes,
	}
}
