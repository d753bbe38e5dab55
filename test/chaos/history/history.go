package history

import (
	"cmp"
	"fmt"
)

// Shard is what offsets are counted in.
type Shard struct {
	Stream string
	Number uint32
}

// String is "stream/shard".
func (s Shard) String() string { return fmt.Sprintf("%s/%d", s.Stream, s.Number) }

// compareShards orders reports.
func compareShards(a, b Shard) int {
	return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Number, b.Number))
}

// Outcome is what a publisher was told.
type Outcome uint8

// Outcomes. The zero value is that of a publish without an answer.
const (
	Unknown Outcome = iota // nothing yet, or nothing certain
	Acked
	Refused // it is not stored
)

// String names it.
func (o Outcome) String() string {
	switch o {
	case Acked:
		return "acknowledged"
	case Refused:
		return "refused"
	case Unknown:
	}
	return "of unknown outcome"
}

// Never is when something returned that has not: after everything else.
const Never = int64(1<<63 - 1)

// Source is a publisher to one shard.
type Source struct {
	Shard Shard
	// Repeats says that it sends again without being recognised: a record may be there more than once, and out of order.
	Repeats bool
	// Unordered says only that its records may change their order.
	Unordered bool
}

// Publish is one record that was published. Times are of one clock, in any unit.
type Publish struct {
	ID      ID
	Call    int64
	Return  int64 // Never: there was no answer
	Outcome Outcome
	Offset  uint64 // if Acked
}

// Reader is a subscription, or a read of a log at the end.
type Reader struct {
	Name  string
	Shard Shard
	// Via is the broker that was asked first, for the report.
	Via string
	// Lossy says that offsets may be missing: the stream forgets, or is trimmed, or the reader may be cut off. What is
	// missing must then have been said (Delivery.Gap).
	Lossy bool
	// Latest says that it asked for the end, and Call and Return when; Start is the offset that it was promised.
	Latest       bool
	Call, Return int64
	Start        uint64
	Deliveries   []Delivery
}

// Delivery is one event.
type Delivery struct {
	At      int64
	Offset  uint64
	ID      ID
	Skipped uint64 // hidden records directly before it
	Gap     uint64 // records that were said to be lost directly before it
}

// Final is a shard's log as it is at the end, read through one broker.
type Final struct {
	Shard Shard
	Via   string
	// Oldest is the first offset that is retained, End the offset after the last one.
	Oldest, End uint64
	Records     map[uint64]ID
	// Forgets says that acknowledged records may be missing: the stream is in memory and its broker was killed.
	Forgets bool
}

// History is all of it.
type History struct {
	Sources   map[uint32]Source
	Publishes []Publish
	Readers   []Reader
	Finals    []Final
}
