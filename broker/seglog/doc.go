// Package seglog is a log of records on disk: a directory of segments that are
// appended to, read by offset, and removed from the old end.
//
// It knows nothing of streams, subscriptions or replication, orders nothing and
// merges nothing: one owner appends what it has already ordered, and is told when
// it is committed. It is not a write-ahead log for several writers either, but can have
// a part in one. The format is in docs/format/seglog.md.
//
// Invariants:
//
//   - Offsets are dense: each record begins where the one before it ends, across
//     segments. Reads never deliver a record whose predecessor they have not passed.
//   - What Config.Committed has reported under FsyncAlways survives a power cut, and
//     is never cut off at Open: a tail is only torn if nothing says that it was
//     durable. Otherwise it is damage, a *CorruptionError, and nothing is deleted.
//   - A segment that has a successor is complete and was flushed before the
//     successor got its name. So damage in it is never the trace of a crash.
//   - Every record says up to where the segments were durable when it was written.
//     That, and the mark that Close leaves, tell a torn tail from a damaged one.
//   - With a Journal, what it holds without a gap behind the segments is as good as
//     flushed: Open writes it to the segment where that has lost it. Damage is not
//     mended from it.
//   - After the first failed flush nothing is committed until the log is opened
//     again, and what was not known to be durable is then written once more.
//   - Readers wait for no append and no flush. The only disk I/O that they wait for
//     beside their own is that of a segment's file being opened, and of a closed
//     segment's index being read or rebuilt.
//   - A log that nobody appends to never flushes.
//
// Who calls what: Append is the owner's alone, from one goroutine at a time;
// Config.Committed comes from the log's flusher goroutine; everything else may be
// called from anywhere. A Cursor belongs to one goroutine. The log owns two
// goroutines (and one more during a flush in interval mode); Close waits for them.
//
// # Files
//
//	log.go, config.go, errors.go     a log: its fields, its life, what it is given, what it says
//	append.go, roll.go, fill.go      records to the active segment, and to the next; zeros ahead of both
//	journal.go, journaled.go         the journal: what goes there, and what Open takes from it
//	manual.go                        Sync, TrimTo and Reset, for an owner with a log of his own
//	flush.go, keeper.go              the two goroutines: what is synced; what can wait
//	read.go, lookup.go, scan.go      pages, from an offset to its place, from record to record
//	records.go                       whole records, for a copy of the log
//	trim.go, trimpoint.go, remove.go  retention, and what it would take; the end of all
//	segment.go                       one file and who has it open
//	segmentheader.go, record.go, index.go, state.go, mark.go, names.go  the format
//	recover.go, sealed.go, tail.go   what Open finds, and how it judges it
//	repair.go, leftovers.go, recovery.go  what it cuts, writes again and removes, and tells
//	inspect.go, report.go            the same for people, of a log that is not open
package seglog
