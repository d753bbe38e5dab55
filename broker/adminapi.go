package broker

import (
	"context"
	"errors"
	"fmt"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/cluster"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// adminAPI is the broker as package admin asks for it.
type adminAPI struct {
	streams *directory
	changes changes
}

// changes is how streams are made, changed and deleted: by this broker alone or by
// its cluster.
type changes interface {
	create(ctx context.Context, spec catalog.StreamSpec, requestID string) (v *served, created bool, err error)
	update(ctx context.Context, n catalog.Name, change catalog.Change) (*served, error)
	remove(ctx context.Context, n catalog.Name) error
}

var (
	_ admin.Streams       = adminAPI{}
	_ admin.Subscriptions = adminAPI{}
)

// Stream shows one stream.
func (a adminAPI) Stream(ctx context.Context, name admin.Name) (admin.Stream, error) {
	v, err := a.streams.lookup(name.CatalogName())
	if err != nil {
		return admin.Stream{}, err
	}
	out := []admin.Stream{shown(v)}
	a.complete(ctx, out)
	return out[0], nil
}

// complete has the shards shown that this broker does not serve, if it is one of a cluster.
func (a adminAPI) complete(ctx context.Context, streams []admin.Stream) {
	if c, ok := a.changes.(*clusterStreams); ok {
		c.complete(ctx, streams)
	}
}

// Streams shows all streams.
func (a adminAPI) Streams(ctx context.Context) ([]admin.Stream, error) {
	all := a.streams.all()
	out := make([]admin.Stream, 0, len(all))
	for _, v := range all {
		out = append(out, shown(v))
	}
	a.complete(ctx, out)
	return out, nil
}

// CreateStream makes a stream.
func (a adminAPI) CreateStream(ctx context.Context, spec admin.StreamSpec, requestID string) (admin.Stream, bool, error) {
	s, err := spec.CatalogSpec()
	if err != nil {
		return admin.Stream{}, false, err
	}
	v, created, err := a.changes.create(ctx, s, requestID)
	if err != nil {
		return admin.Stream{}, false, adminError(err)
	}
	return shown(v), created, nil
}

// UpdateStream changes a stream.
func (a adminAPI) UpdateStream(ctx context.Context, name admin.Name, change admin.StreamChange) (admin.Stream, error) {
	v, err := a.changes.update(ctx, name.CatalogName(), change.CatalogChange())
	if err != nil {
		return admin.Stream{}, adminError(err)
	}
	return shown(v), nil
}

// DeleteStream removes a stream and its records.
func (a adminAPI) DeleteStream(ctx context.Context, name admin.Name) error {
	return adminError(a.changes.remove(ctx, name.CatalogName()))
}

// adminError gives errors of the data path the form in which the admin reports them.
func adminError(err error) error {
	if errors.Is(err, errClosing) {
		return &admin.Error{Code: admin.CodeDraining, Retry: admin.RetryNow, Message: "the broker is shutting down"}
	}
	if _, ok := errors.AsType[*cluster.Error](err); ok {
		return clusterError(err)
	}
	if e, ok := errors.AsType[*stream.Error](err); ok {
		text := e.Message
		if e.Err != nil {
			text = fmt.Sprintf("%s: %v", e.Message, e.Err)
		}
		out := &admin.Error{Code: admin.Code(e.Code.String()), Retry: admin.Retry(e.Retry.String()), Message: text}
		if e.Code == wire.CodeOverloaded {
			out.Detail = &admin.Detail{Reason: e.Reason, RetryAfterMS: uint64(e.RetryAfter.Milliseconds())}
		}
		return out
	}
	return err
}

// shown is a stream as people see it.
func shown(v *served) admin.Stream {
	out := admin.Stream{
		Spec: admin.SpecOf(v.entry.Spec), Incarnation: v.entry.Incarnation, CreatedAt: v.entry.CreatedAt,
		Shards: make([]admin.Shard, v.entry.Spec.Shards),
	}
	for i := range out.Shards {
		k := &out.Shards[i]
		k.Shard = uint32(i)
		if i < len(v.entry.Places) {
			k.SetPlace(v.entry.Places[i])
			if v.leader != nil {
				k.Leader = v.leader(i)
			}
		}
		local := v.shard(i)
		if local == nil {
			switch {
			case v.problem != nil:
				k.Error, k.Detail = v.problem.advice(), v.problem.err.Error()
			case v.refusal != nil:
				k.Error = v.refusal.Message
			}
			continue
		}
		local.show(k)
	}
	return out
}

// show says how a shard stands whose records are here.
func (s *openShard) show(k *admin.Shard) {
	info := s.Info()
	k.OldestOffset, k.NextOffset = info.Oldest, info.Mark
	k.LogBytes, k.TailBytes, k.Subscriptions = info.LogBytes, info.TailBytes, info.Subscriptions
	if p := s.problem(&info); p != nil {
		k.Error, k.Detail = p.advice(), p.err.Error()
	}
}

// Subscriptions shows the readers of a stream, or all of them.
func (a adminAPI) Subscriptions(_ context.Context, of admin.Name) ([]admin.Subscription, error) {
	all := a.streams.all()
	if of != (admin.Name{}) {
		v, err := a.streams.lookup(of.CatalogName())
		if err != nil {
			return nil, err
		}
		all = []*served{v}
	}
	var out []admin.Subscription
	for _, v := range all {
		for _, k := range v.here() {
			for _, i := range k.Subscriptions() {
				out = append(out, shownSubscription(&i))
			}
		}
	}
	return out, nil
}

// Subscription shows one reader.
func (a adminAPI) Subscription(ctx context.Context, id uint64) (admin.Subscription, error) {
	all, err := a.Subscriptions(ctx, admin.Name{})
	if err != nil {
		return admin.Subscription{}, err
	}
	for i := range all {
		if all[i].ID == id {
			return all[i], nil
		}
	}
	return admin.Subscription{}, noSubscription(id)
}

// EndSubscription ends one reader; its client resubscribes if it wants to.
func (a adminAPI) EndSubscription(_ context.Context, id uint64) error {
	for _, v := range a.streams.all() {
		for _, k := range v.here() {
			if k.End(id) {
				return nil
			}
		}
	}
	return noSubscription(id)
}

func noSubscription(id uint64) error {
	return &admin.Error{Code: admin.CodeNotFound, Retry: admin.RetryFatal, Message: fmt.Sprintf("there is no subscription %d", id)}
}

func shownSubscription(i *stream.SubscriptionInfo) admin.Subscription {
	return admin.Subscription{
		ID:    i.ID,
		Name:  admin.Name{Tenant: i.Stream.Tenant, Namespace: i.Stream.Namespace, Stream: i.Stream.Stream},
		Shard: i.Shard, Remote: i.Conn, Principal: i.Principal, State: i.State.String(), OnFull: i.OnFull.String(),
		NextOffset: i.Next, LagRecords: i.LagRecords, LagEntries: i.LagEntries, LagBytes: i.LagBytes,
		Delivered: i.Delivered, Dropped: i.Dropped, Since: i.Since,
	}
}
