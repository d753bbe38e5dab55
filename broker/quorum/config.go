package quorum

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wal"
)

// MaxEntryBytes bounds the data of one entry. The largest publish has room in one.
const MaxEntryBytes = 17 << 20

// Timings are those of all groups of a node. Zero values are the defaults in brackets.
type Timings struct {
	Heartbeat time.Duration // without a word from the leader for this long a follower stands for election [500 ms]
	Election  time.Duration // a candidate without a majority tries again after this [500 ms]
	Lease     time.Duration // a leader that has not heard a majority for this long steps down [500 ms]
	Commit    time.Duration // followers of an idle group hear of the last commit after this [1 s]
}

// NodeConfig says who a node is and what its groups are kept with.
type NodeConfig struct {
	Self Server
	// Dir holds a directory for each group. It is made if it is missing.
	Dir  string
	FS   vfs.FS          // for all files but bolt's, which are the system's; nil: vfs.OS
	WAL  *wal.Log        // holds the groups' entries; its owner closes it after the node
	Peer *peer.Transport // NewNode handles KindRaft on it, so it comes before Serve; its owner closes it after the node

	Timings Timings
	// AppendTimeout is how long storage, or the machine, may take before the group counts as stuck [2 s].
	AppendTimeout time.Duration
	// ProposeTimeout bounds a proposal: it is answered with ErrOutcomeUnknown then [10 s].
	ProposeTimeout time.Duration
	// SnapshotBytes and SnapshotEntries: a group takes a snapshot by itself when so much
	// was appended since its last one [32 MiB, 65536].
	SnapshotBytes   int64
	SnapshotEntries uint64
	// TrailingBytes of entries are kept behind a snapshot for followers that are a
	// little behind [8 MiB].
	TrailingBytes int64

	// State opens a group's term and vote (nil: a bolt file). Tests whose FS is not
	// the system's have theirs, see FileState.
	State func(path string) (StateStore, error)

	Metrics Metrics
	Log     *slog.Logger // nil: nothing is logged
}

// Metrics are told what happens; any may be nil. They must not block.
type Metrics struct {
	Leadership func(group uint32, leading bool)
	Proposed   func(group uint32, took time.Duration, err error)
	Stored     func(group uint32, entries, bytes int, took time.Duration, err error)
	Snapshot   func(group uint32, took time.Duration, err error)
	Installed  func(group uint32, took time.Duration, err error) // a follower's Restore
	Stuck      func(group uint32, stuck bool)
}

// Validate reports every problem.
func (c *NodeConfig) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("quorum: config: "+format, args...)) }
	if err := c.Self.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Dir == "" {
		bad("dir is empty")
	}
	if c.WAL == nil {
		bad("no write-ahead log")
	}
	if c.Peer == nil {
		bad("no peer transport")
	}
	t := c.Timings
	t.setDefaults()
	const least = 20 * time.Millisecond
	if t.Heartbeat < least || t.Lease < least || t.Commit < least {
		bad("timings %v: none may be below %v", t, least)
	}
	if t.Lease > t.Heartbeat || t.Heartbeat > t.Election {
		bad("timings %v: want lease <= heartbeat <= election", t)
	}
	if c.AppendTimeout < 0 || c.ProposeTimeout < 0 || c.SnapshotBytes < 0 || c.TrailingBytes < 0 {
		bad("negative bounds")
	}
	return errors.Join(errs...)
}

func (t *Timings) setDefaults() {
	def(&t.Heartbeat, 500*time.Millisecond)
	def(&t.Election, 500*time.Millisecond)
	def(&t.Lease, min(t.Heartbeat, 500*time.Millisecond))
	def(&t.Commit, time.Second)
}

func (c *NodeConfig) setDefaults() {
	c.Timings.setDefaults()
	def(&c.AppendTimeout, 2*time.Second)
	def(&c.ProposeTimeout, 10*time.Second)
	def(&c.SnapshotBytes, 32<<20)
	def(&c.SnapshotEntries, 65536)
	def(&c.TrailingBytes, 8<<20)
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.State == nil {
		c.State = openBolt
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
