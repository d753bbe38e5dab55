// Package catalog remembers which streams there are: their settings, which
// incarnation of a name is the living one, and where offsets must not start
// again. In a cluster it also remembers which brokers there are, which of them
// hold a quorum group, and who has each shard.
//
// A State and the Commands that change it are a state machine: pure, so that all
// brokers of a cluster that apply the same commands in the same order have the
// same state. A Catalog is the State of a single broker, kept in one file and
// changed by the same commands. The package is not the streams: it opens no logs,
// removes no directories and knows no subscribers. It is not consensus either:
// package quorum orders the commands, package cluster proposes them, package
// placement decides what to propose. Whoever assembles the broker makes the world
// follow the catalog.
//
// # Invariants
//
//   - A change is visible to readers only once it is durable. A change that could
//     not be made durable is undone on disk as far as the disk allows, and the
//     next change writes the whole state again.
//   - What a command does depends on the state and the command alone. A refused
//     command changes nothing, and one that was done already is success.
//   - A command that this release does not understand completely is an error
//     (UnknownCommandError), and the broker must stop following the cluster: it
//     would go on with another state than the others.
//   - No offset of a name is ever used twice. A stream that is created under the
//     name of a deleted one starts beyond every offset, and beyond every cursor,
//     that the old one could have handed out, so that an old cursor is too old
//     for every client; a shard in memory starts beyond its reserved mark after
//     a restart and on another broker.
//   - A durable shard belongs to an instance of its owner, that is to a volume. On
//     another volume it is lost, not empty.
//   - Damaged metadata is an error that says so. It is never taken for an empty
//     catalog, and nothing on disk is touched because of it.
//   - States and entries are immutable: a change makes others.
//
// The formats are in docs/format/catalog.md.
//
// # Goroutines
//
// The package starts none. Everything may be called from any goroutine. Get and
// List take no lock and never wait for the disk; changes of a Catalog queue behind
// each other and hold up nobody else.
//
// # Files
//
//	state.go, entry.go, grave.go    what is known; of a stream; of a deleted name
//	spec.go, name.go, cluster.go    a stream's settings and name; what a cluster has
//	command.go, codec.go            what may be asked for, and its encoded form
//	transition.go, result.go        one command being applied, and what came of it
//	applystream.go, applydelete.go  streams: made, changed; sealed, ended, buried
//	applycluster.go, founding.go    a cluster is founded by a single broker
//	applybroker.go, applygroup.go   brokers come, change and go; groups
//	applymove.go                    a shard goes to another owner
//	file.go, fileentry.go           the format of the file and of snapshots; of streams
//	filecluster.go                  what the format has of a cluster
//	catalog.go, persist.go          a single broker's: its life; its file
//	create.go, update.go, delete.go a single broker's changes
//	reserve.go                      a single broker's offsets of memory shards
//	errors.go                       why something is refused or cannot be read
package catalog
