package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// openAtOnce is how many streams are opened at a time when the broker starts.
const openAtOnce = 8

// streams are the streams of the catalog, open. It is the server's Directory.
//
// changing comes before the locks of the catalog, of shards and of logs (docs/locks.md).
// Lookups take none.
type streams struct {
	opener  *opener
	catalog *catalog.Catalog
	log     *slog.Logger

	generation atomic.Uint64
	byName     atomic.Pointer[map[stream.Name]*served] // replaced as a whole

	changing sync.Mutex // one change at a time; held while logs are opened and closed
	closed   bool       // guarded by changing: nothing may be changed any more

	stop  chan struct{} // closed when the broker shuts down
	tasks sync.WaitGroup
}

// openStreams opens everything that is in the catalog.
func openStreams(o *opener, c *catalog.Catalog, log *slog.Logger) *streams {
	s := &streams{opener: o, catalog: c, log: log, stop: make(chan struct{})}
	entries := c.List()
	all := make([]*served, len(entries))
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i := range entries {
		g.Go(func() error {
			all[i] = o.open(&entries[i], false)
			return nil
		})
	}
	_ = g.Wait() // none fails
	byName := make(map[stream.Name]*served, len(all))
	for _, v := range all {
		byName[nameOf(v.entry.Spec.Name)] = v
	}
	s.byName.Store(&byName)
	return s
}

// Stream finds a stream for the server.
func (s *streams) Stream(name stream.Name) (*stream.Stream, error) {
	v := (*s.byName.Load())[name]
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
func (s *streams) Generation() uint64 { return s.generation.Load() }

// Brokers are none: there is only this one.
func (s *streams) Brokers() []wire.Broker { return nil }

// all are the streams by name.
func (s *streams) all() []*served {
	return slices.SortedFunc(maps.Values(*s.byName.Load()), func(a, b *served) int {
		x, y := a.entry.Spec.Name, b.entry.Spec.Name
		return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Stream, y.Stream))
	})
}

func (s *streams) lookup(n catalog.Name) (*served, error) {
	if v := (*s.byName.Load())[nameOf(n)]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("broker: stream %s: %w", n, catalog.ErrNotFound)
}

// publish makes v what is served under its name; a nil v removes the name. The
// caller holds changing.
func (s *streams) publish(n catalog.Name, v *served) {
	next := maps.Clone(*s.byName.Load())
	if v == nil {
		delete(next, nameOf(n))
	} else {
		next[nameOf(n)] = v
	}
	s.byName.Store(&next)
	s.generation.Add(1)
}

var errClosing = errors.New("broker: shutting down, nothing is changed any more")

// problems are the shards that somebody should look at, with what to do.
func (s *streams) problems() (out []string) {
	for _, v := range s.all() {
		if v.problem != nil {
			out = append(out, fmt.Sprintf("%s: %s", v.entry.Spec.Name, v.problem))
		}
		for i := range v.shards {
			info := v.shards[i].Info()
			if p := v.shards[i].problem(&info); p != nil {
				out = append(out, fmt.Sprintf("%s shard %d: %s", v.entry.Spec.Name, i, p))
			}
		}
	}
	return out
}

// beginShutdown ends changes and closes all shards: their readers get what is
// committed, then are reset.
func (s *streams) beginShutdown(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	var g errgroup.Group
	for _, v := range s.all() {
		for _, k := range v.shards {
			g.Go(func() error { return k.Close(ctx, stream.EndShutdown) })
		}
	}
	return g.Wait()
}

// finishShutdown flushes and closes the logs of shards without readers.
func (s *streams) finishShutdown() error {
	s.tasks.Wait()
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for _, v := range s.all() {
		for _, k := range v.shards {
			g.Go(k.CloseLog)
		}
	}
	return g.Wait()
}
