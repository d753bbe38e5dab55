// Package replica keeps shards the same on several brokers: it is the state machine
// of a quorum group, and what proposes to it.
//
// It is not a consensus protocol: package quorum has that. It knows nothing of clients
// or of catalogs: it is told which shards there are, and their settings are bytes to
// it that the assembly reads.
//
// # How a record travels
//
//	Shard.Publish -> proposer: merged with others into an entry -> quorum: on a majority's disks
//	    -> Group.Apply on every broker: offsets, the shard's log, mark; on the leader the ring and readers
//	    -> the proposer answers, in the order in which it was asked
//
// # Invariants
//
//   - What Apply does depends on the entries alone: replicas that have applied the same
//     entries have the same offsets, records, producers and settings. Time comes in the
//     entry. An entry that cannot be read stops the replica, it is never passed over.
//   - A shard's log is not flushed as it is written: the entries are what a crash is
//     recovered from, until a snapshot has flushed it. What it holds beyond the newest
//     snapshot is applied again and skipped, by offset.
//   - A log holds nothing that is not committed, so that any broker may give any other
//     what it lacks, at any time.
//   - A snapshot copies no records, and one is installed by fetching what is missing.
//   - Nothing is served before everything that earlier leaders have committed is applied.
//   - What the log of one shard refuses is tried again until it takes it: the group is
//     stuck meanwhile, publishes are refused, and quorum gives leadership away.
//   - What a shard has lost is given up only once another broker has answered that it has it.
//   - Every publish is answered once, within the patience of quorum.
//
// # Goroutines
//
// Recover, Apply, Snapshot and Restore come from the quorum group's own goroutine. A
// group that was started has four: answer (proposer), lead, repairing and trimming; and
// one for each dropped shard until its data is gone. Close waits for all of them.
//
// # Files
//
//	group.go, config.go, errors.go  a group, what it is given, what it says
//	shard.go, key.go, log.go        one shard, its name, its log
//	propose.go                      publishes to entries, and their answers
//	apply.go, change.go, trim.go    entries to shards: records; opening to dropping; retention
//	lead.go                         when it serves, and where readers go afterwards
//	snapshot.go, restore.go         where shards stand, to a manifest and back
//	fill.go, repair.go              fetching what is missing; what has become damaged
//	fetchserve.go, fetchwire.go     the other side of that, and what is said between them
//	entry.go, manifest.go           the formats (docs/format/quorum.md)
package replica
