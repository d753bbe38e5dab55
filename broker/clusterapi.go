package broker

import (
	"context"
	"errors"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/cluster"
)

// clusterAPI is the broker's cluster as package admin asks for it.
type clusterAPI struct{ cluster *cluster.Cluster }

var _ admin.Cluster = clusterAPI{}

// SetDraining drains a broker, or has it take part again.
func (a clusterAPI) SetDraining(ctx context.Context, node string, draining bool) error {
	return clusterError(a.cluster.SetDraining(ctx, node, draining))
}

// RemoveBroker takes a broker out of the cluster.
func (a clusterAPI) RemoveBroker(ctx context.Context, node string, force bool) error {
	return clusterError(a.cluster.Remove(ctx, node, force))
}

// MoveReplica moves a replica of a group.
func (a clusterAPI) MoveReplica(ctx context.Context, group uint32, from, to string) error {
	return clusterError(a.cluster.Move(ctx, group, from, to))
}

// TransferLeader has another broker lead a group.
func (a clusterAPI) TransferLeader(ctx context.Context, group uint32, to string) error {
	return clusterError(a.cluster.TransferLeader(ctx, group, to))
}

// BalanceLeaders has leaders go where they belong.
func (a clusterAPI) BalanceLeaders(ctx context.Context) error {
	return clusterError(a.cluster.Balance(ctx))
}

// clusterError gives errors of the cluster the form in which the admin reports them.
func clusterError(err error) error {
	e, ok := errors.AsType[*cluster.Error](err)
	if !ok {
		return err
	}
	out := &admin.Error{Code: admin.CodeRefused, Retry: admin.RetryFatal, Message: e.Message}
	switch e.Code {
	case cluster.CodeNoLeader:
		out.Code = admin.CodeNoLeader
	case cluster.CodeNotFound:
		out.Code = admin.CodeNotFound
	case cluster.CodeInvalid:
		out.Code = admin.CodeInvalidRequest
	case cluster.CodeClosed:
		out.Code = admin.CodeDraining
	default:
	}
	switch {
	case e.Code == cluster.CodeOutcomeUnknown:
		out.Code, out.Retry = admin.CodeNoLeader, admin.RetryOutcomeUnknown
	case e.Retry:
		out.Retry, out.Detail = admin.RetryAfter, &admin.Detail{RetryAfterMS: clusterRetryMS}
	}
	return out
}

// clusterRetryMS is how long a caller should leave a cluster alone that cannot do
// something yet.
const clusterRetryMS = 1000

// ClusterStatus shows the cluster.
func (a clusterAPI) ClusterStatus(ctx context.Context) (admin.ClusterStatus, error) {
	s := a.cluster.Status(ctx)
	out := admin.ClusterStatus{
		Cluster: s.Cluster, Asked: s.Asked, Leader: s.Leader, Problem: s.Problem, Index: s.Index, Replicas: s.Settings.Replicas,
		Brokers: make([]admin.ClusterBroker, 0, len(s.Brokers)), Groups: make([]admin.ClusterGroup, 0, len(s.Groups)),
	}
	for i := range s.Brokers {
		b := &s.Brokers[i]
		out.Brokers = append(out.Brokers, admin.ClusterBroker{
			Node: b.NodeID, Instance: b.Instance, Peer: b.Peer, Client: b.Client, Admin: b.Admin, Zone: b.Zone, Version: b.Version,
			Joined: b.Joined, Draining: b.Draining, Up: b.Up, Trouble: b.Trouble, Heard: b.Heard,
			Replicas: b.Holds.Replicas, Leads: b.Holds.Leads, Shards: b.Holds.Shards, Voter: b.Holds.Voter,
			InSync: b.InSync, CanStop: b.CanStop, Because: b.Because,
		})
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		shown := admin.ClusterGroup{Group: g.ID, Target: g.Target, Leader: g.Leader, Term: g.Term, Members: []admin.ClusterMember{}, Next: g.Next}
		for _, m := range g.Members {
			shown.Members = append(shown.Members, admin.ClusterMember(m))
		}
		out.Groups = append(out.Groups, shown)
	}
	for _, m := range s.Moves {
		out.Moves = append(out.Moves, admin.ClusterMove{
			Name:  admin.Name{Tenant: m.Stream.Tenant, Namespace: m.Stream.Namespace, Stream: m.Stream.Stream},
			Shard: m.Shard, From: m.From, To: m.To, Problem: m.Problem,
		})
	}
	return out, nil
}
