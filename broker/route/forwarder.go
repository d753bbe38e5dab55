package route

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/metrics"
)

// Forwarder is the sending side of a broker. Its methods may be called from any goroutine.
type Forwarder struct {
	cfg Config
	log *slog.Logger
	now func() time.Time
	m   *metrics.Forward

	held atomic.Int64 // publishes that wait for somebody to take them

	mu     sync.Mutex
	places map[Key]*Place
	links  map[string]*link // by node
	fresh  []*Place         // to be looked at
	closed bool

	kick    chan struct{} // capacity 1: there is something fresh
	closing chan struct{}
	once    sync.Once
	tasks   sync.WaitGroup // the watcher and the links
}

// NewForwarder makes one. It connects to nobody before there is something to forward.
func NewForwarder(cfg Config) (*Forwarder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	if cfg.Metrics == nil {
		var err error
		if cfg.Metrics, err = metrics.New(nil); err != nil {
			return nil, fmt.Errorf("route: %w", err)
		}
	}
	f := &Forwarder{
		cfg: cfg, log: cfg.Log, now: time.Now, m: &cfg.Metrics.Forward,
		places: make(map[Key]*Place), links: make(map[string]*link),
		kick: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	f.tasks.Go(f.watch)
	return f, nil
}

// Place is the place of a shard: the same one for the same key until Remove.
func (f *Forwarder) Place(k Key) *Place {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.places[k]
	if p == nil {
		p = &Place{f: f, key: k}
		if f.closed {
			p.removed = draining()
		}
		f.places[k] = p
	}
	return p
}

// Remove forgets a shard whose stream was deleted: what waits is refused as not_found,
// and so is what its place is still given.
func (f *Forwarder) Remove(k Key) {
	f.mu.Lock()
	p := f.places[k]
	delete(f.places, k)
	f.mu.Unlock()
	if p != nil {
		p.remove(notFound())
	}
}

// remove refuses what waits and what comes.
func (p *Place) remove(why error) {
	var refused []*entry
	p.mu.Lock()
	p.removed = why
	p.waiting = append(p.waiting, p.back...)
	clear(p.back)
	p.back = p.back[:0]
	p.unhold()
	p.drop(&refused, len(p.waiting), func(e *entry) error {
		if e.maybe {
			return e.expired("")
		}
		return why
	})
	p.mu.Unlock()
	finishAll(refused)
}

// link is the connection to a node.
func (f *Forwarder) link(node string) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.links[node]
	if l == nil {
		l = newLink(f, node)
		f.links[node] = l
	}
	return l
}

// holds counts n more publishes as held, and says how many are.
func (f *Forwarder) holds(n int) int64 {
	if n != 0 {
		f.m.Held.Add(float64(n))
	}
	return f.held.Add(int64(n))
}

// look has the watcher look at a place soon.
func (f *Forwarder) look(p *Place) {
	f.mu.Lock()
	f.fresh = append(f.fresh, p)
	f.mu.Unlock()
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// Stats are what a forwarder has now.
type Stats struct {
	Held     int // publishes that wait for somebody to serve their shard
	Underway int // publishes on their way to other brokers
	Links    int // connections to other brokers
}

// Stats reads the state for metrics.
func (f *Forwarder) Stats() Stats {
	s := Stats{Held: int(f.held.Load())}
	for _, l := range f.allLinks() {
		n, up := l.load()
		s.Underway += n
		if up {
			s.Links++
		}
	}
	return s
}

// complain says that a connection failed, or did not come about.
func (f *Forwarder) complain(node string, err error, lost int) {
	f.log.Warn("connection to forward publishes failed", slog.String("broker", node), slog.Int("unanswered", lost), slog.Any("error", err))
}

func (f *Forwarder) allLinks() []*link {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*link, 0, len(f.links))
	for _, l := range f.links {
		all = append(all, l)
	}
	return all
}

// Close refuses what comes from now on and what waits, as draining, and ends every
// connection; what is on its way to others is answered as long as ctx lasts, and then
// refused with an unknown outcome. What shards of this broker were given is theirs.
func (f *Forwarder) Close(ctx context.Context) error {
	f.once.Do(func() {
		f.mu.Lock()
		f.closed = true
		places := make([]*Place, 0, len(f.places))
		for _, p := range f.places {
			places = append(places, p)
		}
		f.mu.Unlock()
		for _, p := range places {
			p.remove(draining())
		}
		links := f.allLinks()
		for _, l := range links {
			l.close()
		}
		stop := context.AfterFunc(ctx, func() {
			for _, l := range links {
				l.abort()
			}
		})
		close(f.closing)
		f.tasks.Wait()
		stop()
	})
	return nil
}
