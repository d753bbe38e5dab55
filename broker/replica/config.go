package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"felix.dev/felix/broker/stream"
)

// Opening is what a shard is opened with.
type Opening struct {
	Key   ShardKey
	First uint64 // offset of the first record ever
	Spec  []byte // as given to OpenShard or Configure, for the assembly to read
}

// Settings are what a group itself needs of a spec.
type Settings struct {
	MaxBytes int64         // retention; 0: no bound
	MaxAge   time.Duration // retention; 0: no bound
}

// Config is what a group is made with. Zero values are the documented defaults.
type Config struct {
	Group uint32
	// OpenLog opens a shard's log (seglog with FsyncManual, with First and Incarnation
	// of the opening), also one that was closed because it failed. A damaged one is
	// opened as well: it is then rebuilt from other brokers.
	OpenLog func(o Opening) (Log, error)
	// RemoveLog removes the data of a shard whose log is closed; none there is no error.
	RemoveLog func(key ShardKey) error
	// Shard is the configuration of the shard of a spec. Of one that is configured anew the
	// bounds of the ring and of readers are taken.
	Shard func(o Opening) (stream.Config, error)
	// Settings reads a spec.
	Settings func(spec []byte) (Settings, error)
	// Peers are the nodes that may hold the group's records, without this one. They are
	// asked for what this broker has lost. nil: there are none.
	Peers func() []string
	// Dial opens a connection to fetch from a node: peer.Transport.Dial with KindFetch.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Moved says how clients reach a node that leads in a term; nil: it cannot be said.
	Moved func(node string, term uint64) *stream.Moved
	// Changed is told when shards came or went, or serving began or ended. It must not
	// block and not call the group. nil: nobody is.
	Changed func()

	EntryBytes      int           // of one entry, unless a publish alone is larger [1 MiB]
	InflightEntries int           // entries under way [4]
	InflightBytes   int           // bytes of them [16 MiB]
	QueueBytes      int           // bytes of publishes that wait for an entry [64 MiB]
	TrimEvery       time.Duration // how often retention is looked at [10 s]
	HandOver        time.Duration // how long readers are kept until the next leader is known [1 s]
	FetchBytes      int           // of one page of what other brokers send [1 MiB]

	Metrics Metrics
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: nothing is logged
}

// Metrics are told what happens; any may be nil. They must not block.
type Metrics struct {
	Proposed func(publishes, bytes int) // one entry
	Fetched  func(bytes int)            // from another broker
	Sent     func(bytes int)            // to another broker
	Broken   func()                     // a shard is not whole
}

// Validate reports every problem.
func (c *Config) Validate() error {
	var errs []error
	if c.OpenLog == nil || c.RemoveLog == nil || c.Shard == nil || c.Settings == nil {
		errs = append(errs, errors.New("replica: config: opening, removing and configuring shards is needed"))
	}
	for _, v := range []int{c.EntryBytes, c.InflightEntries, c.InflightBytes, c.QueueBytes, c.FetchBytes, int(c.TrimEvery), int(c.HandOver)} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("replica: config: %d is out of range", v))
		}
	}
	return errors.Join(errs...)
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func (c *Config) setDefaults() {
	def(&c.EntryBytes, 1<<20)
	def(&c.InflightEntries, 4)
	def(&c.InflightBytes, 16<<20)
	def(&c.QueueBytes, 64<<20)
	def(&c.TrimEvery, 10*time.Second)
	def(&c.HandOver, time.Second)
	def(&c.FetchBytes, 1<<20)
	if c.Peers == nil {
		c.Peers = func() []string { return nil }
	}
	if c.Dial == nil {
		c.Dial = func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("replica: no way to other brokers")
		}
	}
	if c.Moved == nil {
		c.Moved = func(string, uint64) *stream.Moved { return nil }
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	m := &c.Metrics
	for _, f := range []*func(int){&m.Fetched, &m.Sent} {
		if *f == nil {
			*f = func(int) {}
		}
	}
	if m.Proposed == nil {
		m.Proposed = func(int, int) {}
	}
	if m.Broken == nil {
		m.Broken = func() {}
	}
	c.Log = c.Log.With(slog.Uint64("group", uint64(c.Group)))
}
