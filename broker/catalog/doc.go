// Package catalog remembers which streams there are: their settings, which
// incarnation of a name is the living one, and where offsets must not start
// again.
//
// It is for a single broker, which keeps the catalog in one file. It is not the
// streams: it opens no logs, removes no directories and knows no subscribers.
// Whoever assembles the broker makes the world follow the catalog.
//
// # Invariants
//
//   - A change is visible to readers only once it is durable. A change that could
//     not be made durable is undone on disk as far as the disk allows, and the
//     next change writes the whole state again.
//   - No offset of a name is ever used twice. A stream that is created under the
//     name of a deleted one starts beyond every offset, and beyond every cursor,
//     that the old one could have handed out, so that an old cursor is too old
//     for every client; a shard in memory starts beyond its reserved mark after
//     a restart.
//   - A damaged file is an error that says so. It is never taken for an empty
//     one, and nothing on disk is touched because of it.
//   - Entries are immutable: a change replaces the entry.
//
// The file's format is docs/format/catalog.md.
//
// # Goroutines
//
// The package starts none. Everything may be called from any goroutine. Get and
// List take no lock and never wait for the disk; changes queue behind each other
// and hold up nobody else.
package catalog
