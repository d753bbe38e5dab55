// Package wal is a write-ahead log that many share: what all of them want on disk at
// one moment costs one write and one flush.
//
// There are two ways to use it, each by key. A [Journal] holds bytes of a log that has
// files of its own, until these are flushed. [Entries] holds numbered entries, for a
// raft log; it is where they live, and they can be read. The package knows nothing of
// records, streams or raft, and takes no snapshot: what is in it must be released, or
// it grows. The format is in docs/format/wal.md.
//
// Invariants:
//
//   - What was reported as durable survives a power cut, in the order in which it was
//     appended under its key. What was refused is not there afterwards.
//   - One commit is under way at a time. So a batch that has a later one behind it was
//     flushed: if it can't be read, that is damage, a *CorruptionError, and nothing is
//     changed. Only the last batch can be torn.
//   - After the first failed flush nothing is appended until the log is opened again;
//     the last batch is then written once more before anything relies on it.
//   - A batch that is refused takes all that waits with it: what comes later under the
//     same key must not be there without what came before.
//   - Files go oldest first, and only when nobody needs anything in them. A file that
//     is used again has another seed: what it held before is never read as its own.
//   - Nobody appends, nothing is written: what is only noted (a release) goes along
//     with the next commit, or with Close.
//   - What waits is bounded in bytes, and so are the entries kept in memory.
//
// Goroutines: everything may be called from any. The log owns three: the committer,
// who alone writes; the keeper, who drops files; and one that asks for relief, which
// may block in Config.Pressure. Close waits for them. Journals are told of commits from
// the committer.
//
// # Files
//
//	log.go, config.go, errors.go    a log: its fields, its life, what it is given, what it says
//	owner.go                        what has a key
//	journal.go, replay.go, carry.go  bytes of another log: in, out, and out of the way
//	entries.go, truncate.go         numbered entries: added and read, removed
//	cache.go                        the recent ones in memory
//	batch.go, commit.go             what waits, and its way to the disk
//	file.go, roll.go                one file; the next one
//	drop.go, pressure.go            files that go, and asking for it
//	recover.go, repair.go           what Open finds, and writes again
//	scan.go                         from batch to batch
//	fileheader.go, batchheader.go, record.go, names.go  the format
package wal
