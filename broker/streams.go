package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/stream"
)

// openAtOnce is how many streams are opened at a time when the broker starts.
const openAtOnce = 8

// streams are the streams of a broker that is alone, and the changes of them.
//
// changing comes before the locks of the catalog, of shards and of logs (docs/locks.md).
type streams struct {
	*directory

	opener  *opener
	catalog *catalog.Catalog
	log     *slog.Logger

	changing sync.Mutex // one change at a time; held while logs are opened and closed
	closed   bool       // guarded by changing: nothing may be changed any more

	stop  chan struct{} // closed when the broker shuts down
	tasks sync.WaitGroup
}

// openStreams opens everything that is in the catalog.
func openStreams(o *opener, c *catalog.Catalog, log *slog.Logger) *streams {
	s := &streams{directory: newDirectory(), opener: o, catalog: c, log: log, stop: make(chan struct{})}
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

var errClosing = errors.New("broker: shutting down, nothing is changed any more")

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
