package replica

import (
	"context"
	"log/slog"
	"net"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// ShardKey names a shard for good: a stream that is made again has another incarnation.
type ShardKey struct {
	Incarnation string // 32 hexadecimal digits
	Shard       uint32
}

// Opening is what a shard is opened with.
type Opening struct {
	Key   ShardKey
	First uint64 // offset of the first record ever
	Spec  []byte // as given to OpenShard or Configure, for the assembly to read
}

// Settings are what a group itself needs of a spec.
type Settings struct {
	Queue     stream.Queue
	TailBytes int64
	MaxBytes  int64         // retention; 0: no bound
	MaxAge    time.Duration // retention; 0: no bound
}

// Log is the log of one shard.
type Log interface {
	stream.Log
	// Sync returns when everything that was appended is on disk.
	Sync() error
	// TrimTo removes whole segments below offset.
	TrimTo(offset uint64) error
	// Reset drops everything and goes on at base.
	Reset(base uint64) error
	// TrimPoint is the first offset that retention keeps.
	TrimPoint(maxBytes int64, maxAge time.Duration) (uint64, error)
	// Records reads whole records from an offset on, hidden ones included: up to
	// maxBytes of them, at least one. The first may begin before from.
	Records(from uint64, maxBytes int, buf []byte) ([]seglog.Record, []byte, error)
}

// Config is what a group is made with. Zero values are the documented defaults.
type Config struct {
	Group uint32
	// OpenLog opens a shard's log (seglog with FsyncManual, First and Incarnation as
	// they are in o), also one that was closed because it failed. A damaged log is
	// opened for reading: it is then rebuilt from other brokers.
	OpenLog func(o Opening) (Log, error)
	// Shard is the configuration of the shard of a spec.
	Shard func(o Opening) (stream.Config, error)
	// Settings reads a spec.
	Settings func(spec []byte) (Settings, error)
	// RemoveLog removes the data of a shard whose log is closed; one that has none is
	// no error.
	RemoveLog func(key ShardKey) error
	// Peers are the nodes that may hold the group's records, without this one. They are
	// asked for what this broker has lost.
	Peers func() []string
	// Dial opens a connection to fetch from a node: peer.Transport.Dial with KindFetch.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Moved says how clients reach a node; nil: it cannot be said.
	Moved func(node string, term uint64) *stream.Moved
	// Changed is told when shards came or went or serving began or ended. It must not
	// block and not call the group.
	Changed func()

	EntryBytes      int           // one entry, unless a publish alone is larger (1 MiB)
	InflightEntries int           // entries under way (4)
	InflightBytes   int           // bytes of them (16 MiB)
	QueueBytes      int           // bytes of publishes that wait for an entry (64 MiB)
	SnapshotEntries uint64        // entries between two snapshots (65536)
	SnapshotBytes   int64         // bytes of entries between two snapshots (256 MiB)
	TrimEvery       time.Duration // how often retention is looked at (10 s)
	StuckAfter      time.Duration // how long an apply is retried before leadership is given away (2 s)

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: nothing is logged
}
