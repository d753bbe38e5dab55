package broker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// directory is what this broker serves, by name. Lookups take no lock; one goroutine
// at a time changes it.
type directory struct {
	generation atomic.Uint64
	byName     atomic.Pointer[map[stream.Name]*served] // replaced as a whole
	// brokers are those of the cluster that clients can reach; nil: there is only this one.
	brokers func() []wire.Broker
}

func newDirectory() *directory {
	d := &directory{}
	d.byName.Store(new(map[stream.Name]*served))
	return d
}

// Stream finds a stream for the server.
func (d *directory) Stream(name stream.Name) (*stream.Stream, error) {
	v := (*d.byName.Load())[name]
	switch {
	case v == nil:
		return nil, &stream.Error{
			Code: wire.CodeNotFound, Retry: wire.RetryAfter, RetryAfter: time.Second,
			Message: fmt.Sprintf("there is no stream %s", name),
		}
	case v.stream == nil:
		return nil, v.refusal
	}
	return v.stream, nil
}

// Generation changes with every change of a stream.
func (d *directory) Generation() uint64 { return d.generation.Load() }

// Brokers are those of the cluster that clients can reach, this one included; none
// outside of one.
func (d *directory) Brokers() []wire.Broker {
	if d.brokers == nil {
		return nil
	}
	return d.brokers()
}

// all are the streams by name.
func (d *directory) all() []*served {
	return slices.SortedFunc(maps.Values(*d.byName.Load()), func(a, b *served) int {
		x, y := a.entry.Spec.Name, b.entry.Spec.Name
		return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Stream, y.Stream))
	})
}

func (d *directory) lookup(n catalog.Name) (*served, error) {
	if v := (*d.byName.Load())[nameOf(n)]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("broker: stream %s: %w", n, catalog.ErrNotFound)
}

// publish makes v what is served under its name; a nil v removes the name. The
// caller is the one who changes streams.
func (d *directory) publish(n catalog.Name, v *served) {
	next := maps.Clone(*d.byName.Load())
	if v == nil {
		delete(next, nameOf(n))
	} else {
		next[nameOf(n)] = v
	}
	d.byName.Store(&next)
	d.generation.Add(1)
}

// problems are the shards that somebody should look at, with what to do.
func (d *directory) problems() (out []string) {
	for _, v := range d.all() {
		if v.problem != nil {
			out = append(out, fmt.Sprintf("%s: %s", v.entry.Spec.Name, v.problem))
		}
		for i, k := range v.here() {
			info := k.Info()
			if p := k.problem(&info); p != nil {
				out = append(out, fmt.Sprintf("%s shard %d: %s", v.entry.Spec.Name, i, p))
			}
		}
	}
	return out
}
