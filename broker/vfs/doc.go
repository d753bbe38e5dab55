// Package vfs is the seam between the broker's storage and the operating
// system: the few file operations that logs and catalogs need, as interfaces.
//
// It is not a general file system abstraction. Everything is addressed by path,
// files are read and written by position only, and there is no notion of a
// current directory or of links that point elsewhere.
//
// What the interfaces promise, and what callers rely on:
//
//   - File.Datasync returns nil only when every byte written through any handle
//     of that file before the call is on stable storage, together with the size
//     needed to read it back. After it has returned an error nothing is known
//     about those bytes, and a later nil says nothing about them either.
//   - FS.SyncDir makes the names in one directory durable: creations, renames and
//     removals in it. It doesn't reach into sub-directories, nor does it make the
//     directory's own name durable in its parent (see MkdirAllSync).
//   - FS.Rename replaces an existing target atomically.
//   - Errors wrap the operating system's error numbers, so that
//     errors.Is(err, syscall.ENOSPC) and errors.Is(err, fs.ErrNotExist) work.
//
// All methods may be called from any goroutine. vfs.OS is the real file system;
// vfs/faultfs is one in memory that loses power on demand.
package vfs
