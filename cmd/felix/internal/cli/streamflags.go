package cli

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
)

// streamFlags are the settings of a stream as flags, for create and update.
type streamFlags struct {
	set        *pflag.FlagSet
	shards     uint32
	durability choice
	routing    choice
	maxBytes   size
	maxAge     time.Duration
	entries    int
	queueBytes size
	onFull     choice
	tailBytes  size
	fsync      choice
	fsyncEvery time.Duration
}

// Names of the flags.
const (
	flagShards     = "shards"
	flagMaxBytes   = "retain-bytes"
	flagMaxAge     = "retain-age"
	flagEntries    = "queue-entries"
	flagQueueBytes = "queue-bytes"
	flagOnFull     = "on-full"
	flagTail       = "tail-bytes"
	flagFsync      = "fsync"
	flagFsyncEvery = "fsync-every"
)

var settableFlags = []string{flagShards, flagMaxBytes, flagMaxAge, flagEntries, flagQueueBytes, flagOnFull, flagTail, flagFsync, flagFsyncEvery}

func newStreamFlags(cmd *cobra.Command, create bool) *streamFlags {
	s := &streamFlags{
		set:        cmd.Flags(),
		durability: newChoice(string(catalog.Durable), string(catalog.Memory), string(catalog.Quorum)),
		routing:    newChoice("modulo", "jump_hash"),
		onFull:     newChoice(string(catalog.DropNew), string(catalog.CatchUp), string(catalog.Block)),
		fsync:      newChoice(string(catalog.FsyncAlways), string(catalog.FsyncInterval)),
	}
	if create {
		s.durability.register(cmd, "durability", "", "where records are: on the disk of one broker, in its memory, or on the disks of a majority of several (in a cluster)")
		s.routing.register(cmd, "routing", "", "how keys are spread over shards")
	}
	s.set.Uint32Var(&s.shards, flagShards, 1, "number of shards, each an ordered log of its own; may only grow")
	s.set.Var(&s.maxBytes, flagMaxBytes, "remove the oldest records beyond this size, divided among the shards; 0: keep all")
	s.set.DurationVar(&s.maxAge, flagMaxAge, 0, "remove records older than this; 0: keep all")
	s.set.IntVar(&s.entries, flagEntries, 0, "how many published batches a reader may be behind; 0: the broker's default (4096, unless it is configured)")
	s.set.Var(&s.queueBytes, flagQueueBytes, "how many bytes a reader may be behind; 0: the broker's default (128 MiB)")
	s.onFull.register(cmd, flagOnFull, "", "what happens to a reader that is further behind: end it and tell it where to resume, let it catch up from the log, or have publishers wait")
	s.set.Var(&s.tailBytes, flagTail, "how much of the newest records a shard keeps in memory; 0: the broker's default (64 MiB)")
	s.fsync.register(cmd, flagFsync, "", "when a Durable stream acknowledges: once on disk, or once written (a power cut may then take the last moments)")
	s.set.DurationVar(&s.fsyncEvery, flagFsyncEvery, 0, "how often the log is flushed with --fsync Interval; 0: the broker's default (1s)")
	return s
}

func (s *streamFlags) given(name string) bool { return s.set.Changed(name) }

// changed tells whether any setting was given.
func (s *streamFlags) changed() bool {
	return slices.ContainsFunc(settableFlags, s.given)
}

// orDefault leaves a setting that was not given to the broker.
func (s *streamFlags) orDefault(name string, c *choice) string {
	if s.given(name) {
		return c.value
	}
	return ""
}

// spec is the stream that create asks for.
func (s *streamFlags) spec(name admin.Name) admin.StreamSpec {
	return admin.StreamSpec{
		Name: name, Shards: s.shards, Durability: s.durability.value, Routing: s.routing.value,
		Retention: admin.Retention{MaxBytes: s.maxBytes.bytes, MaxAge: admin.Duration(s.maxAge)},
		Queue:     admin.Queue{Entries: s.entries, Bytes: s.queueBytes.bytes, OnFull: s.orDefault(flagOnFull, &s.onFull)},
		TailBytes: s.tailBytes.bytes,
		Fsync:     admin.Fsync{Mode: s.orDefault(flagFsync, &s.fsync), Every: admin.Duration(s.fsyncEvery)},
	}
}

// change is what update asks for, given what is there: settings travel in groups, and what was not given of a group
// stays as it is.
func (s *streamFlags) change(before admin.StreamSpec) admin.StreamChange {
	var c admin.StreamChange
	if s.given(flagShards) {
		c.Shards = &s.shards
	}
	retention, queue, fsync := before.Retention, before.Queue, before.Fsync
	if s.given(flagMaxBytes) {
		retention.MaxBytes = s.maxBytes.bytes
	}
	if s.given(flagMaxAge) {
		retention.MaxAge = admin.Duration(s.maxAge)
	}
	if s.given(flagEntries) {
		queue.Entries = s.entries
	}
	if s.given(flagQueueBytes) {
		queue.Bytes = s.queueBytes.bytes
	}
	if s.given(flagOnFull) {
		queue.OnFull = s.onFull.value
	}
	if s.given(flagFsync) {
		fsync.Mode = s.fsync.value
		if fsync.Mode != string(catalog.FsyncInterval) {
			fsync.Every = 0 // it would be refused, and means nothing any more
		}
	}
	if s.given(flagFsyncEvery) {
		fsync.Every = admin.Duration(s.fsyncEvery)
	}
	if retention != before.Retention {
		c.Retention = &retention
	}
	if queue != before.Queue {
		c.Queue = &queue
	}
	if fsync != before.Fsync {
		c.Fsync = &fsync
	}
	if s.given(flagTail) {
		c.TailBytes = &s.tailBytes.bytes
	}
	return c
}
