package catalog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"felix.dev/felix/broker/wire"
)

// DefaultNamespace is the namespace of a stream that names none.
const DefaultNamespace = "default"

// Durability says what acknowledged means for a stream.
type Durability string

// Durabilities. A single broker has no Quorum.
const (
	Memory  Durability = "Memory"  // the owner has it in memory
	Durable Durability = "Durable" // it is on the owner's disk
	Quorum  Durability = "Quorum"  // it is on the disks of a majority of a group
)

// errQuorumAlone is what a broker outside a cluster says to a Quorum stream.
var errQuorumAlone = fmt.Errorf("durability %s needs a cluster: start the broker as a member of one, or take %s", Quorum, Durable)

// OnFull says what happens when a subscription's lag passes its bound.
type OnFull string

// Overflow policies. Empty is the broker's default.
const (
	DropNew OnFull = "DropNew"
	Block   OnFull = "Block"
	CatchUp OnFull = "CatchUp"
)

// FsyncMode says when a durable stream's log is synced.
type FsyncMode string

// Fsync modes. Empty is the broker's default.
const (
	FsyncAlways   FsyncMode = "Always"
	FsyncInterval FsyncMode = "Interval"
)

// Limits of a stream's settings.
const (
	MaxShards       = 256
	MaxQueueEntries = 1 << 20
	MinTailBytes    = 64 << 10
	MaxTailBytes    = 16 << 30
)

// Retention bounds what a stream keeps. Zero: no bound.
type Retention struct {
	MaxBytes int64         `json:"max_bytes,omitempty"`
	MaxAge   time.Duration `json:"max_age_ns,omitempty"`
}

// Queue bounds how far a subscription may lag. Zero: the broker's default.
type Queue struct {
	Entries int    `json:"entries,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	OnFull  OnFull `json:"on_full,omitempty"`
}

// Fsync says when a log is synced. Zero: the broker's default.
type Fsync struct {
	Mode  FsyncMode     `json:"mode,omitempty"`
	Every time.Duration `json:"every_ns,omitempty"` // for FsyncInterval; 0: the broker's default
}

// StreamSpec is what somebody wants a stream to be. It can be compared with ==.
type StreamSpec struct {
	Name       Name
	Shards     uint32     // 0: 1. May only grow
	Durability Durability // empty: Durable. Never changes
	Routing    wire.Routing
	Retention  Retention
	Queue      Queue
	TailBytes  int64 // 0: the broker's default
	Fsync      Fsync
}

// Normalized fills in what does not depend on the broker's configuration.
func (s StreamSpec) Normalized() StreamSpec {
	if s.Name.Namespace == "" {
		s.Name.Namespace = DefaultNamespace
	}
	if s.Shards == 0 {
		s.Shards = 1
	}
	if s.Durability == "" {
		s.Durability = Durable
	}
	return s
}

// Validate reports every problem of the settings at once, as an *InvalidError.
func (s StreamSpec) Validate() error {
	s = s.Normalized()
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if err := s.Name.Validate(); err != nil {
		errs = append(errs, err)
	}
	add(s.Shards > MaxShards, "shards %d: at most %d", s.Shards, MaxShards)
	add(!slices.Contains([]Durability{Memory, Durable, Quorum}, s.Durability), "durability %q: want %s, %s or %s", s.Durability, Memory, Durable, Quorum)
	add(s.Routing != wire.RoutingModulo && s.Routing != wire.RoutingJump, "routing %v is not known", s.Routing)

	r := s.Retention
	add(r.MaxBytes < 0, "retention of %d bytes is negative", r.MaxBytes)
	add(r.MaxAge != 0 && r.MaxAge < time.Second, "retention of %v: at least 1s", r.MaxAge)

	q := s.Queue
	add(q.Entries < 0 || q.Entries > MaxQueueEntries, "queue of %d entries: 0 to %d", q.Entries, MaxQueueEntries)
	add(q.Bytes < 0, "queue of %d bytes is negative", q.Bytes)
	add(!slices.Contains([]OnFull{"", DropNew, Block, CatchUp}, q.OnFull), "onFull %q: want %s, %s or %s", q.OnFull, DropNew, Block, CatchUp)
	add(s.TailBytes != 0 && (s.TailBytes < MinTailBytes || s.TailBytes > MaxTailBytes),
		"tail of %d bytes: %d to %d", s.TailBytes, MinTailBytes, int64(MaxTailBytes))

	f := s.Fsync
	add(!slices.Contains([]FsyncMode{"", FsyncAlways, FsyncInterval}, f.Mode), "fsync %q: want %s or %s", f.Mode, FsyncAlways, FsyncInterval)
	add(f.Every < 0, "fsync interval %v is negative", f.Every)
	add(f.Every != 0 && f.Mode != FsyncInterval, "fsync interval without fsync %s", FsyncInterval)

	if s.Durability == Quorum {
		add(f != Fsync{}, "fsync is for a log of one broker: what a %s stream has acknowledged is on disk", Quorum)
	}
	if s.Durability == Memory {
		add(q.OnFull == CatchUp, "onFull %s needs a log, and a memory stream has none", CatchUp)
		add(f != Fsync{}, "fsync needs a log, and a memory stream has none")
		add(r.MaxAge != 0 && r.MaxBytes == 0, "a memory stream with a retention time needs a retention in bytes, too")
	}
	if len(errs) == 0 {
		return nil
	}
	return &InvalidError{Name: s.Name, Err: errors.Join(errs...)}
}
