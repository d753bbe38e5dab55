package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/cluster"
	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/replica"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/wire"
)

const (
	instanceName = "instance"
	walName      = "wal"
	raftName     = "raft"
)

// member is a broker's part in its cluster: what it would not have alone.
type member struct {
	self    quorum.Server
	log     *slog.Logger
	peers   *peer.Transport
	node    *quorum.Node
	cluster *cluster.Cluster
	forward *route.Forwarder
	groups  *groups
	streams *clusterStreams
	where   *locations
	ready   caughtUp
}

// openMember makes everything that the broker needs to be one of its cluster.
func (b *Broker) openMember(ctx context.Context) error {
	cfg := b.cfg.Cluster
	instance, err := instanceOf(b.cfg.path(instanceName))
	if err != nil {
		return err
	}
	m := &member{self: quorum.Server{Node: b.cfg.NodeID, Instance: instance}, log: b.log}
	b.member = m
	alone, err := b.aloneBefore()
	if err != nil {
		return err
	}
	book, err := cluster.OpenBook(b.cfg.FS, b.cfg.DataDir)
	if err != nil {
		return err
	}
	if err := m.listen(ctx, b, book); err != nil {
		return err
	}
	m.node, err = quorum.NewNode(quorum.NodeConfig{
		Self: m.self, Dir: b.cfg.path(raftName), FS: b.cfg.FS, WAL: b.wal, Peer: m.peers, Log: b.log,
		Metrics: quorumHooks(&b.metrics.Quorum),
		Timings: quorum.Timings{
			Heartbeat: time.Duration(cfg.Heartbeat), Election: time.Duration(cfg.Election), Lease: time.Duration(cfg.Lease),
		},
	})
	if err != nil {
		return err
	}
	if err := m.assemble(b); err != nil {
		return err
	}
	m.cluster, err = cluster.New(cluster.Config{
		Self: m.self, Book: book, Found: cfg.Found || len(cfg.Join) == 0, Join: cfg.Join, Import: alone,
		Broker: catalog.Broker{
			Peer: b.advertisedPeer(), Client: b.cfg.Advertise, Admin: b.advertisedAdmin(), Zone: cfg.Zone, Version: b.cfg.Version,
		},
		Settings: catalog.Settings{Groups: uint32(cfg.Groups), Replicas: cfg.Replicas, MaxStreams: b.cfg.Limits.MaxStreams},
		Peer:     m.peers, Node: m.node, NewMachine: m.groups.machine, Started: m.groups.started, Stopped: m.groups.stopped,
		MoveShard: m.streams.takeShard, Served: m.streams.caughtUp, Log: b.log,
	})
	if err != nil {
		return err
	}
	m.where.leader, m.streams.cluster = m.cluster.Leader, m.cluster
	b.streams, b.changes = m.streams.directory, m.streams
	return nil
}

// joinCluster returns when the broker knows the cluster's catalog and serves what is in
// it, however long that takes.
func (b *Broker) joinCluster(ctx context.Context) error {
	m := b.member
	if m == nil {
		return nil
	}
	m.peers.Serve()
	if err := m.cluster.Start(ctx); err != nil {
		return err
	}
	m.streams.begin()
	if err := b.metrics.CollectCluster(m.state); err != nil {
		return err
	}
	b.tasks.Go(func() {
		select {
		case <-m.cluster.Done():
			if err := m.cluster.Err(); err != nil && b.serving.Load() {
				b.fail(err)
			}
		case <-b.down:
		}
	})
	return nil
}

// listen opens the listener for the other brokers. It serves later: who connects
// until then waits.
func (m *member) listen(ctx context.Context, b *Broker, book *cluster.Book) error {
	cfg := b.cfg.Cluster
	files, err := pki.Open(pki.Paths{CA: cfg.CAFile, Cert: cfg.CertFile, Key: cfg.KeyFile}, b.log)
	if err != nil {
		return err
	}
	m.peers, err = peer.Listen(ctx, peer.Config{
		NodeID: m.self.Node, Cluster: book.Cluster, Listen: cfg.Listen, Certificate: files.Certificate, CAs: files.CAs,
		Resolve: book.Resolve, DialNet: cfg.DialNet, MaxCallBytes: 2 * wire.MaxPayload, Log: b.log,
	})
	return err
}

// assemble makes what the groups and the routes of publishes consist of.
func (m *member) assemble(b *Broker) error {
	o := b.opener()
	fetches := replica.NewFetches()
	m.groups = &groups{
		opener: o, log: b.log, fetches: fetches, peers: m.holders, placed: m.placed,
		dial: func(ctx context.Context, node string) (net.Conn, error) {
			return m.peers.Dial(ctx, node, peer.KindFetch, "")
		},
	}
	m.groups.byID.Store(&map[uint32]*replica.Group{})
	m.where = newLocations(m.self, m.groups)
	m.groups.moved = m.where.moved
	var err error
	m.forward, err = route.NewForwarder(route.Config{
		Self: m.self.Node, Table: m.where, Metrics: b.metrics, Log: b.log,
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			return m.peers.Dial(ctx, node, peer.KindForward, "")
		},
	})
	if err != nil {
		return err
	}
	receiver, err := route.NewReceiver(route.ReceiverConfig{Table: m.where, Log: b.log})
	if err != nil {
		return err
	}
	m.peers.Handle(peer.KindForward, func(ctx context.Context, c *peer.Conn) { receiver.Serve(ctx, c) })
	m.peers.Handle(peer.KindFetch, func(ctx context.Context, c *peer.Conn) { fetches.Serve(ctx, c) })
	m.streams = newClusterStreams(m, o, b.log)
	m.groups.changed = m.streams.wake
	o.reserve = m.streams.reserve
	return nil
}

// holders are the other nodes that may hold the records of a group.
func (m *member) holders(group uint32) (nodes []string) {
	g, _ := m.cluster.State().Group(group)
	for _, member := range g.Members {
		if member.Node != m.self.Node {
			nodes = append(nodes, member.Node)
		}
	}
	return nodes
}

// placed are the shards that the catalog gives a group.
func (m *member) placed(group uint32) (keys []route.Key) {
	entries := m.cluster.State().List()
	for i := range entries {
		for shard, p := range entries[i].Places {
			if p.Group == group {
				keys = append(keys, keyOf(&entries[i], shard))
			}
		}
	}
	return keys
}

// aloneBefore is what a broker that was alone until now brings to the cluster that it
// founds; nil: nothing.
func (b *Broker) aloneBefore() (*catalog.State, error) {
	switch _, err := os.Stat(b.cfg.path(catalogName)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // documented: nothing
	case err != nil:
		return nil, fmt.Errorf("broker: catalog: %w", err)
	}
	c, err := catalog.Open(catalog.Config{Path: b.cfg.path(catalogName), MaxStreams: b.cfg.Limits.MaxStreams, MustExist: true})
	if err != nil {
		return nil, err
	}
	return c.State(), nil
}

// advertisedPeer is where the other brokers reach this one; a port that the system
// chose is known only now.
func (b *Broker) advertisedPeer() string {
	cfg := b.cfg.Cluster
	if cfg.Advertise != "" {
		return cfg.Advertise
	}
	return reachable(b.member.peers.Addr())
}

// advertisedAdmin is where the admin of this broker is reached; empty: nowhere.
func (b *Broker) advertisedAdmin() string {
	_, port, err := net.SplitHostPort(b.cfg.Admin.Listen)
	host, _, herr := net.SplitHostPort(b.cfg.Advertise)
	if b.cfg.Admin.Disabled || err != nil || herr != nil || port == "0" {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// PeerAddr is where the other brokers connect; nil outside of a cluster.
func (b *Broker) PeerAddr() net.Addr {
	if b.member == nil || b.member.peers == nil {
		return nil
	}
	return b.member.peers.Addr()
}

// beginShutdown ends the part that comes before the broker's connections are closed.
func (m *member) beginShutdown(ctx context.Context) error {
	if m.streams != nil && m.streams.stop != nil { // else it never came to know the catalog
		m.streams.beginShutdown(ctx)
	}
	var errs []error
	if m.cluster != nil {
		errs = append(errs, m.cluster.Close(ctx))
	}
	if m.forward != nil {
		errs = append(errs, m.forward.Close(ctx))
	}
	return errors.Join(errs...)
}

// finishShutdown ends the rest, once nobody reads any more.
func (m *member) finishShutdown(ctx context.Context) error {
	var errs []error
	if m.streams != nil {
		errs = append(errs, m.streams.finishShutdown())
	}
	if m.node != nil {
		errs = append(errs, m.node.Close(ctx))
	}
	if m.peers != nil {
		errs = append(errs, m.peers.Close())
	}
	return errors.Join(errs...)
}
