// Package faultfs is a file system in memory that loses power on demand and fails
// on demand. It is for tests of what the broker writes to disk, and models a
// machine that promises no more than vfs does; real ones promise more.
//
// # Power loss
//
// CrashImage returns what a power cut at this moment would leave, as a file system
// of its own; the one it was taken from goes on, so that many images can be taken
// of one moment, and the program under test can be shut down properly afterwards.
//
// File content. Each file has what programs see and what is on the platter. They
// are compared in sectors of 512 bytes, the unit that is written wholly or not at
// all. A write makes sectors dirty; File.Datasync copies the dirty ones to the
// platter together with the size. At a cut:
//
//   - Drop leaves the platter: what wasn't flushed is gone, sizes included.
//   - Keep leaves what programs saw. That is no power cut at all, but a process
//     that was killed.
//   - Random decides for each dirty sector on its own whether it got to the
//     platter, so that later writes may survive where earlier ones did not and a
//     record may be torn anywhere. A size that wasn't flushed is the old one, the
//     new one or, if the file had grown, one in between. Bytes below the size that
//     nobody wrote to the platter are zeros.
//
// SetWriteback lets dirty sectors reach the platter on their own, so that also
// versions of a sector that were overwritten before the cut can survive.
//
// Names. Each directory likewise has the names that programs see and those on the
// platter. FS.SyncDir copies them, for that directory only; flushing a file does
// not make its name durable, nor does syncing a directory make its own. At a cut
// Drop takes back every creation, rename, link and removal since the last SyncDir;
// Random decides for each on its own, so that they may survive in any combination
// and a removed file may come back while one removed before it does not. A rename
// inside a directory is one such step: both names change or neither. A rename
// between directories is two.
//
// # Failed flushes
//
// When a fault makes Datasync fail, the dirty sectors count as clean but do not
// get to the platter: programs still see them, later flushes succeed without them,
// a power cut takes them. Every other open handle of the file gets an error from its
// next flush, once; handles opened later get none. That is how Linux behaves. Writing
// the sectors again makes them dirty again.
//
// # Faults
//
// Inject makes chosen operations fail, SetSpace bounds the disk (a write that
// doesn't fit is cut short: ENOSPC), SetReadOnly makes everything that writes fail
// with EROFS, also through open files and also a flush that had something to do,
// and Hold makes operations hang until they are let go. Counts tells how often
// each operation was called.
//
// All methods may be called from any goroutine. An operation that hangs holds no
// lock.
package faultfs
