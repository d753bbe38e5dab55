// Package seglog is a log of records on disk: a directory of segments that are
// appended to, read by offset, and removed from the old end.
//
// It knows nothing of streams, subscriptions or replication, orders nothing and
// merges nothing: one owner appends what it has already ordered, and is told when
// it is committed. It is not a write-ahead log for several writers either. The
// format is in docs/format/seglog.md.
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
//   - Every record says up to where the log was durable when it was written. That,
//     and the mark that Close leaves, tell a torn tail from a damaged one.
//   - After the first failed flush nothing is committed until the log is opened
//     again, and what was not known to be durable is then written once more.
//   - Readers wait for no append and no flush. They take no lock that is held across
//     disk I/O, but for that of a closed segment whose index is being rebuilt.
//   - A log that nobody appends to never flushes.
//
// Who calls what: Append is the owner's alone, from one goroutine at a time;
// Config.Committed comes from the log's flusher goroutine; everything else may be
// called from anywhere. A Cursor belongs to one goroutine. The log owns two
// goroutines (and one more during a flush in interval mode); Close waits for them.
package seglog
