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

const (
	// openAtOnce is how many streams are opened at a time when the broker starts.
	openAtOnce = 8
	// readersWait is how long the readers of a stream that is deleted may take to come
	// to its end, and reopenWait those of one whose settings change: nobody is served
	// meanwhile.
	readersWait = 30 * time.Second
	reopenWait  = 5 * time.Second
)

// streams are the streams of the catalog, open. It is the server's Directory.
//
// Lock order: changing, then the catalog's own. Lookups take neither.
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

// create makes a stream, or finds it made. One that could not be opened before is
// tried again.
func (s *streams) create(spec catalog.StreamSpec, requestID string) (v *served, created bool, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return nil, false, errClosing
	}
	spec = spec.Normalized()
	if err := s.checkSpec(&spec); err != nil {
		return nil, false, err
	}
	e, created, err := s.catalog.Create(spec, requestID)
	if err != nil {
		return nil, false, err
	}
	if v, err := s.lookup(spec.Name); err == nil && v.stream != nil && v.entry.Incarnation == e.Incarnation {
		return v, created, nil
	}
	v = s.opener.open(&e, created)
	s.publish(spec.Name, v)
	if v.stream == nil {
		return nil, false, v.refusal
	}
	return v, created, nil
}

// checkSpec refuses what the catalog allows and this broker cannot do.
func (s *streams) checkSpec(spec *catalog.StreamSpec) error {
	var errs []error
	if spec.Durability == catalog.Durable && s.opener.dataDir == "" {
		errs = append(errs, errors.New("a durable stream needs a broker with a data directory"))
	}
	if spec.Durability == catalog.Memory && spec.Retention.MaxAge != 0 {
		errs = append(errs, errors.New("a memory stream keeps by bytes, not by age"))
	}
	if len(errs) == 0 {
		return nil
	}
	return &catalog.InvalidError{Name: spec.Name, Err: errors.Join(errs...)}
}

// update changes a stream's settings. More shards are added beside the others; any
// other change of a durable stream closes its shards and opens them anew, so that
// its readers resume. A memory stream would lose its records, and refuses that.
func (s *streams) update(ctx context.Context, n catalog.Name, change catalog.Change) (*served, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return nil, errClosing
	}
	have, err := s.lookup(n)
	if err != nil {
		return nil, err
	}
	if have.entry.Spec.Durability == catalog.Memory && changesSettings(&have.entry.Spec, change) {
		return nil, &catalog.InvalidError{Name: n, Err: errors.New("a memory stream's settings other than its shards change only by deleting and creating it")}
	}
	e, err := s.catalog.Update(n, change)
	if err != nil {
		return nil, err
	}
	grown, rest := e.Spec, have.entry.Spec
	rest.Shards = grown.Shards
	switch {
	case e.Spec == have.entry.Spec && have.stream != nil:
		return have, nil
	case grown == rest && have.stream != nil:
		return s.grow(have, &e)
	}
	return s.reopen(ctx, have, &e)
}

// changesSettings says whether a change is one of more than the number of shards.
func changesSettings(spec *catalog.StreamSpec, c catalog.Change) bool {
	return c.Retention != nil && *c.Retention != spec.Retention ||
		c.Queue != nil && *c.Queue != spec.Queue ||
		c.TailBytes != nil && *c.TailBytes != spec.TailBytes ||
		c.Fsync != nil && *c.Fsync != spec.Fsync
}

// grow adds the shards that a stream does not have yet. The caller holds changing.
func (s *streams) grow(have *served, e *catalog.Entry) (*served, error) {
	next := *have
	next.entry, next.shards = *e, slices.Clone(have.shards)
	shards := slices.Clone(have.stream.Shards())
	for i := len(shards); i < int(e.Spec.Shards); i++ {
		k, err := s.opener.openShard(e, i, true)
		if err != nil {
			_ = closeShards(context.Background(), next.shards[len(have.shards):], stream.EndShutdown) // nothing is in them
			return nil, fmt.Errorf("broker: stream %s: open shard %d: %w", e.Spec.Name, i, err)
		}
		shards = append(shards, k.Shard)
		next.shards = append(next.shards, k)
	}
	next.stream = stream.NewStream(have.stream.Name, e.Incarnation, have.stream.Durability, have.stream.Routing, shards)
	s.publish(e.Spec.Name, &next)
	return &next, nil
}

// reopen closes a stream's shards and opens them with its new settings. The caller
// holds changing.
func (s *streams) reopen(ctx context.Context, have *served, e *catalog.Entry) (*served, error) {
	away := unavailable(e, nil, &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: "not_ready", Message: "the stream's settings are being changed",
	})
	away.before = have.counted()
	s.publish(e.Spec.Name, away)
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenWait)
	defer cancel()
	if err := closeShards(wait, have.shards, stream.EndShutdown); err != nil {
		s.log.Warn("stream closed with an error to change its settings", slog.String("stream", e.Spec.Name.String()), slog.Any("error", err))
	}
	v := s.opener.open(e, false)
	v.before = have.counted() // what was under way included
	s.publish(e.Spec.Name, v)
	if v.stream == nil {
		return nil, v.refusal
	}
	return v, nil
}

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
