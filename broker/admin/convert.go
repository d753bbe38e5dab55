package admin

import (
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/wire"
)

// CatalogName is the name as the catalog has it.
func (n Name) CatalogName() catalog.Name {
	return catalog.Name{Tenant: n.Tenant, Namespace: n.Namespace, Stream: n.Stream}
}

// nameOf is a catalog's name as it travels.
func nameOf(n catalog.Name) Name {
	return Name{Tenant: n.Tenant, Namespace: n.Namespace, Stream: n.Stream}
}

// CatalogSpec reads the settings; the error is an *Error. It checks only what
// has no form in the catalog: the catalog validates the rest.
func (s StreamSpec) CatalogSpec() (catalog.StreamSpec, error) {
	out := catalog.StreamSpec{
		Name: s.CatalogName(), Shards: s.Shards, Durability: catalog.Durability(s.Durability),
		Retention: s.Retention.catalog(), Queue: s.Queue.catalog(), TailBytes: s.TailBytes, Fsync: s.Fsync.catalog(),
	}
	if s.Routing != "" {
		var r wire.Routing
		if err := r.UnmarshalText([]byte(s.Routing)); err != nil {
			return catalog.StreamSpec{}, invalid("routing %q: want %s or %s", s.Routing, wire.RoutingModulo, wire.RoutingJump)
		}
		out.Routing = r
	}
	return out, nil
}

// SpecOf is a catalog's settings as they travel.
func SpecOf(s catalog.StreamSpec) StreamSpec {
	return StreamSpec{
		Name: nameOf(s.Name), Shards: s.Shards, Durability: string(s.Durability), Routing: s.Routing.String(),
		Retention: Retention{MaxBytes: s.Retention.MaxBytes, MaxAge: Duration(s.Retention.MaxAge)},
		Queue:     Queue{Entries: s.Queue.Entries, Bytes: s.Queue.Bytes, OnFull: string(s.Queue.OnFull)},
		TailBytes: s.TailBytes,
		Fsync:     Fsync{Mode: string(s.Fsync.Mode), Every: Duration(s.Fsync.Every)},
	}
}

// SetPlace notes who has the shard, as a cluster's catalog has it. Who leads a group
// is not the catalog's to know.
func (s *Shard) SetPlace(p catalog.ShardPlace) {
	s.Group, s.Owner, s.Moving = p.Group, p.Owner, p.Moving
}

// CatalogChange is the change as the catalog has it.
func (c StreamChange) CatalogChange() catalog.Change {
	out := catalog.Change{Shards: c.Shards, TailBytes: c.TailBytes}
	if c.Retention != nil {
		out.Retention = new(c.Retention.catalog())
	}
	if c.Queue != nil {
		out.Queue = new(c.Queue.catalog())
	}
	if c.Fsync != nil {
		out.Fsync = new(c.Fsync.catalog())
	}
	return out
}

func (r Retention) catalog() catalog.Retention {
	return catalog.Retention{MaxBytes: r.MaxBytes, MaxAge: time.Duration(r.MaxAge)}
}

func (q Queue) catalog() catalog.Queue {
	return catalog.Queue{Entries: q.Entries, Bytes: q.Bytes, OnFull: catalog.OnFull(q.OnFull)}
}

func (f Fsync) catalog() catalog.Fsync {
	return catalog.Fsync{Mode: catalog.FsyncMode(f.Mode), Every: time.Duration(f.Every)}
}
