package broker

import (
	"cmp"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
)

// Effective is the configuration with what is not set as it will be used.
func (c Config) Effective() Config {
	c.setDefaults()

	server := c.serverConfig().WithDefaults()
	c.Limits = Limits{
		Connections: server.MaxConnections, ConnectionsPerAddress: server.MaxConnectionsPerAddress,
		StreamsPerConnection: server.MaxStreams, Subscriptions: server.MaxSubscriptions,
		AuthTimeout: Duration(server.AuthTimeout), IdleTimeout: Duration(server.IdleTimeout),
		IngressBytes: server.IngressBytes, ConnectionIngressBytes: server.ConnectionIngressBytes,
		ShardIngressBytes: server.ShardIngressBytes, PublishIngressWait: Duration(server.PublishIngressWait),
		MaxRecordBytes: server.MaxRecordBytes, MaxBatchBytes: server.MaxBatchBytes,
		MaxStreams: cmp.Or(c.Limits.MaxStreams, catalog.DefaultMaxStreams),
	}

	shard, s := c.shardConfig(), &c.Streams
	shard = shard.WithDefaults()
	log := seglog.Config{SegmentBytes: s.SegmentBytes, FsyncEvery: time.Duration(s.FsyncEvery)}.WithDefaults()
	*s = StreamDefaults{
		TailBytes: shard.TailBytes, QueueEntries: shard.Queue.Entries, QueueBytes: shard.Queue.Bytes, OnFull: shard.Queue.OnFull.String(),
		BlockTimeout: Duration(shard.BlockTimeout), PublishWait: Duration(shard.PublishWait), PollInterval: Duration(shard.PollInterval),
		BatchEvents: shard.BatchEvents, BatchBytes: shard.BatchBytes, SegmentBytes: log.SegmentBytes,
		Fsync: s.Fsync, FsyncEvery: Duration(log.FsyncEvery),
	}

	out, e := c.Egress.config().WithDefaults(), &c.Egress
	*e = Egress{
		Lanes: out.Lanes, LanePolicy: cmp.Or(e.LanePolicy, "SubscriberIDHash"), SpreadConnections: out.SpreadConnections,
		SlowConsumerTimeout: Duration(out.SlowConsumerTimeout), MaxBytesPerConnection: out.MaxBytesPerConnection, PieceBytes: out.PieceBytes,
	}
	return c
}
